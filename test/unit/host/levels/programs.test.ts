/** Levels and protocols on the host: who is let in, what is spoken, and what the log says of it. */
import t from "tap";
import { PROGRAM, type Program, rangeText } from "../../../../src/base/levels.js";
import { PeerPrograms } from "../../../../src/host/cluster/peer-programs.js";
import type { LogFields } from "../../../../src/ports.js";
import { Cluster, address, helloOf, joinRequest } from "../../../doubles/host/peerworld.js";

const LATER: Program = {
  levels: { min: PROGRAM.levels.max + 1, max: PROGRAM.levels.max + 2 },
  protocols: { min: PROGRAM.protocols.max + 1, max: PROGRAM.protocols.max + 2 },
  version: "9.9",
};

t.test("U7 two nodes speak the lower of their highest protocols", (t) => {
  const of = (min: number, max: number): Program => ({ ...PROGRAM, protocols: { min, max } });
  const silent = { log: () => undefined };
  t.equal(new PeerPrograms(of(4, 6), silent).protocolWith(of(5, 9)), 6);
  t.equal(new PeerPrograms(of(5, 9), silent).protocolWith(of(4, 6)), 6, "from either side");
  t.equal(new PeerPrograms(of(4, 5), silent).protocolWith(of(3, 4)), 4);

  const cluster = new Cluster(2);
  const program = {
    ...PROGRAM,
    protocols: { min: PROGRAM.protocols.max, max: PROGRAM.protocols.max + 3 },
  };
  cluster.kill(2);
  cluster.start(2, { program });
  cluster.ready();
  for (const [node, other] of [
    [1, 2],
    [2, 1],
  ] as const) {
    const peer = cluster
      .node(node)
      .facts()
      .peers.find((facts) => facts.node === other);
    t.match(peer, { linked: true, protocol: PROGRAM.protocols.max });
    t.strictSame(peer?.program, other === 2 ? program : PROGRAM);
  }
  t.end();
});

t.test("U7 disjoint ranges are refused, and the log names both, once", (t) => {
  const told: { event: string; fields: LogFields }[] = [];
  const logger = {
    log: (_level: string, event: string, fields?: LogFields) => {
      told.push({ event, fields: fields ?? {} });
    },
  };
  const programs = new PeerPrograms(PROGRAM, logger);
  const by = address(2);
  t.equal(programs.judge(by, PROGRAM, 1), null);
  for (let times = 0; times < 3; times++) t.equal(programs.judge(by, LATER, 2), "protocol");
  const sameWire = { ...LATER, protocols: PROGRAM.protocols };
  t.equal(programs.judge(by, sameWire, 2), "level");
  programs.refused(by, "level", sameWire);
  t.strictSame(
    told.map(({ event, fields }) => [event, fields["refusal"]]),
    [
      ["This node refuses another one.", "protocol"],
      ["This node refuses another one.", "level"],
      ["Another node refuses this one.", "level"],
    ],
  );
  t.strictSame(told[0]?.fields, {
    node: 2,
    endpoint: by.endpoint,
    refusal: "protocol",
    ownVersion: PROGRAM.version,
    ownProtocols: rangeText(PROGRAM.protocols),
    ownLevels: rangeText(PROGRAM.levels),
    version: "9.9",
    protocols: `${PROGRAM.protocols.max + 1} to ${PROGRAM.protocols.max + 2}`,
    levels: `${PROGRAM.levels.max + 1} to ${PROGRAM.levels.max + 2}`,
  });
  for (let node = 0; node < 5000; node++) programs.judge({ ...by, nodeId: node }, LATER, 2);
  t.ok(programs["told"].size <= 1024, "what is remembered is bounded");
  t.end();
});

t.test("U7 a node of another range is not let in, and nobody ends for it", (t) => {
  const cluster = new Cluster(3).ready();
  const { links } = cluster.node(1);
  t.equal(links.admit(helloOf(2, { bootNumber: 9, program: LATER })), "protocol");
  const levels = { ...LATER, protocols: PROGRAM.protocols };
  t.equal(links.admit(helloOf(2, { bootNumber: 9, program: levels })), "level");
  links.refused(address(2), "protocol", LATER);
  cluster.pass(1000);
  t.strictSame(cluster.world(1).fatals, []);
  t.ok(cluster.node(1).health().ready);
  t.end();
});

t.test("U7 a joiner of another range is refused, with both ranges", (t) => {
  const cluster = new Cluster(1).ready();
  const told: string[] = [];
  for (const program of [LATER, { ...LATER, protocols: PROGRAM.protocols }]) {
    cluster.node(1).links.joinAsked(joinRequest(4, { program }), (answer) => {
      told.push(answer.status === "accepted" ? "accepted" : `${answer.status}: ${answer.reason}`);
    });
  }
  cluster.passUntil(() => told.length === 2);
  const own = `version ${PROGRAM.version} here`;
  const { protocols, levels } = LATER;
  t.strictSame(told, [
    `refused: The programs do not fit: its version 9.9 supports protocol ${protocols.min} to ${protocols.max}, ${own} ${rangeText(PROGRAM.protocols)}.`,
    `refused: The programs do not fit: its version 9.9 supports level ${levels.min} to ${levels.max}, ${own} ${rangeText(PROGRAM.levels)}.`,
  ]);
  t.end();
});
