/**
 * The .proto files against the contract's tables, and the codec: exact numbers, strict text,
 * one-pass writer.
 *
 * The expected table is written in the contract's own notation and independent of the files.
 */
import fc from "fast-check";
import protobuf from "protobufjs";
import descriptor from "protobufjs/ext/descriptor.js";
import t from "tap";
import { Int64 } from "../../../src/base/int64.js";
import {
  bigIntToHalves,
  decodeMessage,
  encodeMessage,
  halvesToBigInt,
  ProtoWriter,
} from "../../../src/proto/codec.js";
import { FILE_DESCRIPTIONS } from "../../../src/proto/generated/descriptors.js";
import * as keyvalues from "../../../src/proto/generated/keyvalues.js";
import * as locks from "../../../src/proto/generated/locks.js";
import * as sequences from "../../../src/proto/generated/sequences.js";
import { CONTRACT_ENUMS, CONTRACT_MESSAGES, CONTRACT_RPCS } from "../../process/contract/table.js";

type Shape = Record<string, unknown>;
interface Field {
  readonly name: string;
  readonly number: number;
  readonly label: number;
  readonly type: number;
  readonly typeName?: string;
  readonly proto3Optional?: boolean;
  readonly oneofIndex?: number;
}
interface MessageShape {
  readonly name: string;
  readonly field?: readonly Field[];
  readonly oneofDecl?: readonly { readonly name: string }[];
}

const SCALARS = new Map([
  [3, "int64"],
  [4, "uint64"],
  [5, "int32"],
  [8, "bool"],
  [9, "string"],
  [12, "bytes"],
  [13, "uint32"],
]);

const GROUPS: Readonly<Record<string, string>> = {
  TX: "TransactionId",
  RT: "ReadTimestamp",
  EX: "Expires",
  LU: "LastUsed",
  LM: "LastModified",
};
const SHORT: Readonly<Record<string, string>> = {
  D: "GrpcKeyValueDurability",
  T: "GrpcKeyValueResponseType",
  Item: "GrpcKeyValueByPrefixItemResponse",
  Hint: "GrpcRouteHint",
};

/** The fields that one line of the contract's notation stands for, as "number name type". */
function expand(text: string): string[] {
  const fields: string[] = [];
  for (const part of text.split(/[;\n]/).map((one) => one.trim())) {
    if (part === "") continue;
    const [name = "", rest = ""] = part.split("=");
    const numbers = rest.split(",");
    const group = GROUPS[name];
    if (group !== undefined) {
      fields.push(`${numbers[0]} ${group}Node int32`, `${numbers[1]} ${group}Physical int64`);
      fields.push(`${numbers[2]} ${group}Counter uint32`);
    } else if (name === "OP") {
      fields.push(`${numbers[0]} CoordinatorKey string`, `${numbers[1]} OperationIdHigh uint64`);
      fields.push(`${numbers[2]} OperationIdLow uint64`);
    } else {
      const [number = "", type = ""] = rest.split(":");
      const words = type.trim().split(" ");
      const last = words.pop() ?? "";
      fields.push([number, name, ...words, SHORT[last] ?? last].join(" "));
    }
  }
  return fields.sort();
}

function describe(field: Field, oneofs: readonly { readonly name: string }[]): string {
  const type = SCALARS.get(field.type) ?? (field.typeName ?? "").slice(1);
  const words = [String(field.number), field.name];
  if (field.label === 3) words.push("rep");
  if (field.proto3Optional === true) words.push("opt");
  else if (field.oneofIndex !== undefined) words.push(`of-${oneofs[field.oneofIndex]?.name}`);
  return [...words, type].join(" ");
}

const files = FILE_DESCRIPTIONS.filter((file) => !file.path.startsWith("grpc/")).map((file) => {
  const bytes = Buffer.from(file.base64, "base64");
  const decoded = descriptor.FileDescriptorProto.decode(bytes);
  return { path: file.path, shape: decoded.toJSON() as Shape };
});
const shapes = files.map(
  ({ shape }) =>
    descriptor.FileDescriptorProto.toObject(descriptor.FileDescriptorProto.fromObject(shape), {
      arrays: true,
    }) as {
      messageType: MessageShape[];
      enumType: { name: string; value: { name: string; number?: number }[] }[];
      service: {
        name: string;
        method: {
          name: string;
          inputType: string;
          outputType: string;
          clientStreaming?: boolean;
          serverStreaming?: boolean;
        }[];
      }[];
      package?: string;
    },
);

t.test("messages have exactly the fields, numbers, types and presence of the contract", (t) => {
  const found = new Map<string, string[]>();
  for (const shape of shapes) {
    t.notOk(shape.package, "no package");
    for (const message of shape.messageType) {
      const lines = (message.field ?? []).map((one) => describe(one, message.oneofDecl ?? []));
      found.set(message.name, lines.sort());
    }
  }
  for (const [name, text] of Object.entries(CONTRACT_MESSAGES)) {
    t.strictSame(found.get(name), expand(text), name);
    found.delete(name);
  }
  t.strictSame([...found.keys()], [], "no message that the contract does not have");
  t.end();
});

t.test("enums and rpcs are those of the contract", (t) => {
  const enums = new Map(shapes.flatMap((shape) => shape.enumType.map((one) => [one.name, one])));
  for (const [name, text] of Object.entries(CONTRACT_ENUMS)) {
    const values = (enums.get(name)?.value ?? []).map((one) => `${one.name}=${one.number ?? 0}`);
    t.strictSame(values.sort(), text.trim().split(/,\s*/).sort(), name);
    enums.delete(name);
  }
  t.strictSame([...enums.keys()], []);
  const rpcs = shapes.flatMap((shape) =>
    shape.service.flatMap((service) =>
      service.method.map((method) => {
        const input = `${method.clientStreaming ? "stream " : ""}${method.inputType.slice(1)}`;
        const output = `${method.serverStreaming ? "stream " : ""}${method.outputType.slice(1)}`;
        return `${service.name}/${method.name} ${input} > ${output}`;
      }),
    ),
  );
  t.strictSame(rpcs.sort(), [...CONTRACT_RPCS].sort());
  t.end();
});

t.test(
  "the descriptors load into one pool per service file and know their optional fields",
  (t) => {
    for (const file of FILE_DESCRIPTIONS) {
      const set = { file: [] as unknown[] };
      for (const path of [...file.dependency, file.path]) {
        const one = FILE_DESCRIPTIONS.find((other) => other.path === path);
        const bytes = Buffer.from(one?.base64 ?? "", "base64");
        set.file.push(descriptor.FileDescriptorProto.decode(bytes));
      }
      const type = descriptor.FileDescriptorSet;
      const root = protobuf.Root.fromDescriptor(type.encode(type.fromObject(set)).finish());
      root.resolveAll();
      for (const service of file.services) t.ok(root.lookupService(service), service);
    }
    t.end();
  },
);

const int64 = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
const text = fc.string({ unit: "grapheme", maxLength: 60 });

t.test("P-144 64-bit fields are exact over the whole range, in both directions", (t) => {
  const edges = [0n, 1n, -1n, 2n ** 31n, -(2n ** 31n), 2n ** 32n, -(2n ** 32n), 2n ** 53n + 1n];
  edges.push(-(2n ** 53n) - 1n, 2n ** 63n - 1n, -(2n ** 63n), 127n, 128n, 2n ** 35n - 1n);
  const check = (value: bigint): void => {
    const codec = sequences.GrpcSequenceAllocation;
    for (const Start of [bigIntToHalves(value), Int64.fromBigInt(value)]) {
      const decoded = decodeMessage(codec, encodeMessage(codec, { Name: "s", Start }));
      if (decoded === null || halvesToBigInt(decoded.Start) !== value) {
        throw new Error(`${value} changed`);
      }
    }
    if (value > -(2n ** 53n) && value < 2n ** 53n) {
      const decoded = decodeMessage(codec, encodeMessage(codec, { End: Number(value) }));
      if (decoded === null || halvesToBigInt(decoded.End) !== value) {
        throw new Error(`${value} changed as a number`);
      }
    }
  };
  for (const value of edges) check(value);
  fc.assert(fc.property(int64, check));
  t.throws(
    () => encodeMessage(sequences.GrpcSequenceAllocation, { End: 2 ** 53 }),
    "a number beyond 2^53 is refused before encoding",
  );
  t.end();
});

t.test("the one-pass writer writes what the reference writer writes", (t) => {
  const response = fc.record({
    ServedFrom: fc.option(text),
    Type: fc.integer(),
    Value: fc.option(fc.uint8Array({ maxLength: 300 })),
    Revision: int64.map(bigIntToHalves),
    ExpiresNode: fc.integer(),
    ExpiresCounter: fc.nat(),
    LastModifiedPhysical: fc.maxSafeInteger(),
    TimeElapsedMs: fc.integer(),
    Route: fc.option(fc.record({ PartitionId: fc.integer(), Endpoint: text })),
  });
  const frame = fc.array(fc.record({ RequestId: fc.integer(), TryGetKeyValue: response }));
  fc.assert(
    fc.property(frame, (Items) => {
      const message = { Type: 15, Frame: { Items } };
      const codec = keyvalues.GrpcBatchClientKeyValueResponse;
      const writer = new ProtoWriter(1);
      codec.encode(message, writer);
      const reference = protobuf.Writer.create();
      Reflect.apply(codec.encode, codec, [message, reference]);
      return Buffer.from(reference.finish()).equals(writer.view(0));
    }),
    { numRuns: 300 },
  );
  t.end();
});

t.test("P-146 text that is not valid UTF-8 is refused, unknown fields are skipped", (t) => {
  const resource = (bytes: readonly number[]): Buffer =>
    Buffer.from([0x0a, bytes.length, ...bytes]);
  const codec = locks.GrpcGetLockRequest;
  const bad = [
    [0xff],
    [0xc0, 0x80],
    [0xed, 0xa0, 0x80],
    [0xe2, 0x82],
    [0xf4, 0x90, 0x80, 0x80],
    [0x61, 0x80],
  ];
  for (const bytes of bad) t.equal(decodeMessage(codec, resource(bytes)), null, String(bytes));
  const good = ["", "a", "ä", "\u{1f600}", "\u0000", "\ufeffx", "e\u0301"];
  for (const one of good) {
    t.equal(decodeMessage(codec, encodeMessage(codec, { Resource: one }))?.Resource, one);
  }
  const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 12 }), (bytes) => {
      let expected: string | null = null;
      try {
        expected = strict.decode(bytes);
      } catch {
        expected = null;
      }
      const decoded = decodeMessage(codec, resource([...bytes]));
      return (decoded === null ? null : decoded.Resource) === expected;
    }),
    { numRuns: 5000 },
  );
  const unknown = Buffer.from([0xfa, 0x3f, 3, 1, 2, 3, 0x0a, 1, 0x61, 0xe0, 0x3f, 5]);
  t.equal(decodeMessage(codec, unknown)?.Resource, "a");
  t.strictSame(Object.keys(decodeMessage(codec, unknown) ?? {}), ["Resource"]);
  t.end();
});

t.test("P-145 a message never touches the prototype of objects", (t) => {
  decodeMessage(
    keyvalues.GrpcTrySetKeyValueRequest,
    encodeMessage(keyvalues.GrpcTrySetKeyValueRequest, { Key: "__proto__" }),
  );
  t.strictSame(Object.keys(Object.prototype), []);
  t.equal(Reflect.get({}, "Key"), undefined);
  t.end();
});
