/**
 * Every administrative call, from the client's request to the operation and back, over REST and
 * gRPC; and the descriptions against the .proto files and the OpenAPI document.
 *
 * A new call is tested here as soon as it is in the table.
 */
import descriptor from "protobufjs/ext/descriptor.js";
import t, { type Test } from "tap";
import type { Call } from "../../../src/api/call.js";
import { CALL_LIST, type CallName } from "../../../src/api/calls.js";
import { fieldOf, type Member, type Message } from "../../../src/api/members.js";
import type { Operation } from "../../../src/client/call/operation.js";
import { CALL_OPERATIONS } from "../../../src/client/metadata/calls.js";
import { parseJson, type JsonObject } from "../../../src/client/values/json.js";
import type { Administration } from "../../../src/operations/api/administration.js";
import { ProtoWriter, protoReader } from "../../../src/proto/codec.js";
import { FILE_DESCRIPTIONS } from "../../../src/proto/generated/descriptors.js";
import { FakeOperations } from "../../doubles/front/operations.js";
import { callRaw, start } from "../grpc/harness.js";
import { startRig } from "../rest/harness.js";
import { askedOf, givenOf, readOf, type Mode, type Values } from "./samples.js";

type AnyOperation = Operation<Values, unknown, unknown>;
const operationOf = (name: CallName): AnyOperation =>
  CALL_OPERATIONS[name] as unknown as AnyOperation;

/** Answers every call with a sample of its answer, and notes what it was asked. */
class Sampled {
  mode: Mode = "large";
  readonly asked: unknown[] = [];
  readonly administration = Object.fromEntries(
    CALL_LIST.map(([name, call]) => [
      name,
      (request: object, _context: object, done: (end: object) => void): void => {
        this.asked.push([name, request]);
        setImmediate(done, { answer: givenOf(call.answer, this.mode) });
      },
    ]),
  ) as unknown as Administration;
}

/** Large numbers may be refused before the operation is asked; small ones are zero or empty. */
const MODES: readonly Mode[] = ["large", "small", "nulls"];

t.test("what a client asks over REST is what the operation gets, and back", async (t) => {
  const sampled = new Sampled();
  const port = Object.assign(new FakeOperations(), { administration: sampled.administration });
  const rig = await startRig({ operations: port });
  t.teardown(() => rig.close());
  for (const [name, call] of CALL_LIST) {
    const { rest, fromRest } = operationOf(name);
    for (const mode of MODES) {
      sampled.mode = mode;
      const asked = askedOf(call.request, mode);
      const answer = await rig.call(rest.method, rest.path(asked), rest.body(asked));
      t.strictSame(sampled.asked.at(-1), [name, asked], `${name} is asked as given, ${mode}`);
      const body = parseJson(answer.text);
      const read = fromRest((Array.isArray(body) ? { list: body } : body) as JsonObject);
      const given = givenOf(call.answer, mode);
      t.strictSame(read, readOf(call.answer, given), `${name} reads as answered, ${mode}`);
      t.equal(answer.status, call.status?.(given as never) ?? 200, `${name}, ${mode}`);
      const isMarked = rest.marker !== undefined && rest.marker in (body as object);
      t.ok(answer.status === 200 || isMarked, `${name}: an answer is told from a problem`);
    }
  }
});

t.test("what a client asks over gRPC is what the operation gets, and back", async (t) => {
  const sampled = new Sampled();
  const port = Object.assign(new FakeOperations(), { administration: sampled.administration });
  const { client } = await start(t, { operations: port });
  for (const [name, call] of CALL_LIST) {
    const operation = operationOf(name);
    for (const mode of MODES) {
      sampled.mode = mode;
      const asked = askedOf(call.request, mode);
      const writer = new ProtoWriter(64);
      operation.write(asked, writer);
      const { error, bytes } = await callRaw(client, call.grpc, writer.view(0));
      t.equal(error, null, `${name}, ${mode}`);
      t.strictSame(sampled.asked.at(-1), [name, asked], `${name} is asked as given, ${mode}`);
      const answer = bytes ?? Buffer.alloc(0);
      const read = operation.fromGrpc(protoReader(answer), answer.length);
      const given = givenOf(call.answer, mode);
      t.strictSame(read, readOf(call.answer, given), `${name} reads as answered, ${mode}`);
    }
  }
});

interface Field {
  readonly name: string;
  readonly label: number;
  readonly type: number;
  readonly typeName?: string;
  readonly proto3Optional?: boolean;
}
interface File {
  readonly messageType: readonly { readonly name: string; readonly field: readonly Field[] }[];
  readonly enumType: readonly {
    readonly name: string;
    readonly value: readonly { readonly name: string }[];
  }[];
  readonly service: readonly {
    readonly name: string;
    readonly method: readonly {
      readonly name: string;
      readonly inputType: string;
      readonly outputType: string;
    }[];
  }[];
}
const files = FILE_DESCRIPTIONS.map(({ base64 }) => {
  const decoded = descriptor.FileDescriptorProto.decode(Buffer.from(base64, "base64"));
  const shape: object = descriptor.FileDescriptorProto.toObject(decoded, { arrays: true });
  return shape as File;
});
const messages = new Map(files.flatMap((file) => file.messageType.map((one) => [one.name, one])));
const enums = new Map(files.flatMap((file) => file.enumType.map((one) => [one.name, one])));

const TYPES = { int64: 3, int32: 5, bool: 8, text: 9, message: 11, uint32: 13, enum: 14 } as const;

function typeOf({ kind, choice }: Member): number {
  if (kind === "choice") return choice?.numberOn === "grpc" ? TYPES.enum : TYPES.text;
  if (kind === "texts") return TYPES.text;
  return kind === "list" ? TYPES.message : TYPES[kind];
}

/** As .proto files write it: NOT_A_MEMBER. */
function constantCase(text: string): string {
  return text.replace(/(?<!^)[A-Z]/g, (letter) => `_${letter}`).toUpperCase();
}

function checkMessage(t: Test, message: Message): void {
  const fields = new Map(messages.get(message.name)?.field.map((field) => [field.name, field]));
  for (const [name, member] of Object.entries(message.members)) {
    const label = `${message.name}.${name}`;
    const field = fields.get(fieldOf(name, member));
    t.equal(field?.type, typeOf(member), label);
    const isList = member.kind === "list" || member.kind === "texts";
    t.equal(field?.label === 3, isList, `${label} is repeated or not`);
    t.equal(field?.proto3Optional ?? false, member.nulls === "absent", `${label}: its null`);
    const type = field?.typeName?.slice(1) ?? "";
    if (typeOf(member) === TYPES.enum) {
      const values = enums.get(type)?.value.map((value) => value.name) ?? [];
      const names = member.choice?.texts.map(constantCase) ?? [];
      t.equal(values.length, names.length, `${label}: ${type}`);
      for (const [at, value] of values.entries()) t.match(value, new RegExp(`_${names[at]}$`));
    }
    fields.delete(fieldOf(name, member));
    if (member.items !== null) {
      t.equal(type, member.items.name, label);
      checkMessage(t, member.items);
    }
  }
  const flags = Object.values(message.members).map(({ nulls }) =>
    nulls !== null && typeof nulls === "object" ? nulls.flag : "",
  );
  for (const flag of flags) fields.delete(flag);
  t.strictSame([...fields.keys()], [], `${message.name} has no field that is not described`);
}

function checkRequest(t: Test, { request }: Call): void {
  const sent = Object.entries(request.members).filter(([, argument]) => !argument.ignored);
  t.strictSame(
    messages.get(request.name)?.field.map(({ name, type }) => [name, type]),
    sent.map(([name, argument]) => [fieldOf(name, argument), TYPES[argument.kind]]),
    request.name,
  );
}

t.test("the descriptions are those of the .proto files", async (t) => {
  const rpcs = new Map(
    files.flatMap(({ service }) =>
      service.flatMap(({ name, method }) => method.map((one) => [`/${name}/${one.name}`, one])),
    ),
  );
  for (const [name, call] of CALL_LIST) {
    const rpc = rpcs.get(call.grpc);
    t.equal(rpc?.inputType, `.${call.request.name}`, name);
    t.equal(rpc?.outputType, `.${call.answer.name}`, name);
    checkRequest(t, call);
    checkMessage(t, call.answer);
  }
});

t.test("1.5 an answer of an earlier version has no member that came later", (t) => {
  const body = parseJson(
    '{"initialized":true,"localEndpoint":"n","keySpaces":[{"keySpace":"s","routingMode":"Hash",' +
      '"descriptors":[{"startKey":null,"endKey":null,"partitionId":1,"generation":1}]}]}',
  );
  const { keySpaces } = CALL_OPERATIONS["ranges.list"].fromRest(body as JsonObject);
  t.match(keySpaces, [{ descriptors: [{ keys: null }], moves: [], leaving: false }]);
  t.end();
});
