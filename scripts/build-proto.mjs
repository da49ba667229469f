/**
 * Turns proto/*.proto into src/proto/generated/: a static codec and its types per service file, and
 * the file descriptors that the reflection service hands out.
 *
 * Owns src/proto/generated/. Invariants: 1. Nothing happens while the output is newer than every
 * input. 2. Each service file has a root of its own, because two of them use the enum value
 * TYPE_NONE. 3. An output is replaced as a whole.
 */
import { existsSync, mkdirSync, renameSync, utimesSync, writeFileSync } from "node:fs";
import { basename, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

/** Codec name → file below proto/. */
const SOURCES = {
  sequences: "sequences.proto",
  locks: "locks.proto",
  keyvalues: "keyvalues.proto",
  cluster: "cluster.proto",
  backups: "backups.proto",
  watch: "watch.proto",
  health: "grpc/health/v1/health.proto",
  reflection: "grpc/reflection/v1/reflection.proto",
};

/** Files that import others than routing.proto. */
const IMPORTS = {
  "routing.proto": [],
  "backups.proto": [],
  "watch.proto": ["routing.proto", "sequences.proto"],
};

const SCALAR_TYPES = {
  string: "string",
  bytes: "Uint8Array",
  bool: "boolean",
  int32: "number",
  uint32: "number",
  int64: "Int64Halves",
  uint64: "Int64Halves",
};

/** Numbers of FieldDescriptorProto.Type. */
const DESCRIPTOR_TYPES = {
  int64: 3,
  uint64: 4,
  int32: 5,
  bool: 8,
  string: 9,
  bytes: 12,
  uint32: 13,
};

function writeWhole(path, text) {
  const aside = `${path}.${process.pid}.tmp`;
  writeFileSync(aside, text);
  renameSync(aside, path);
}

async function staticCodec(pbjs, proto, name, file) {
  const options = ["no-verify", "no-convert", "no-delimited", "no-service", "no-comments"];
  const args = ["-t", "static-module", "-w", "es6", "--keep-case", "--no-create", "--no-typeurl"];
  args.push(...options.map((option) => `--${option}`), "-r", `svc_${name}`, "-p", proto);
  return new Promise((resolve, reject) => {
    pbjs.main([...args, join(proto, file)], (error, output) => {
      if (error) reject(error);
      else resolve(output);
    });
  });
}

function fieldType(field, protobuf) {
  const type = field.resolvedType;
  let name = SCALAR_TYPES[field.type];
  if (type instanceof protobuf.Enum) name = "number";
  else if (type !== null) name = type.name;
  if (name === undefined) throw new Error(`${field.fullName}: type ${field.type} is not supported`);
  if (field.repeated) return `readonly ${name}[]`;
  const absent = (type !== null && name !== "number") || field.partOf;
  return absent ? `${name} | null` : name;
}

/** Messages and enums of one namespace, depth first. */
function* typesOf(namespace, protobuf) {
  for (const entry of namespace.nestedArray) {
    if (entry instanceof protobuf.Service) continue;
    if (entry instanceof protobuf.Type || entry instanceof protobuf.Enum) yield entry;
    if (entry instanceof protobuf.Namespace) yield* typesOf(entry, protobuf);
  }
}

/**
 * Nested and packaged types live in a namespace object of the codec; top-level ones are exported by
 * name.
 */
function declareType(entry, protobuf) {
  if (entry instanceof protobuf.Enum) {
    const values = Object.entries(entry.values).map(([name, id]) => `  readonly ${name}: ${id};`);
    return [`export declare const ${entry.name}: {`, ...values, "};"];
  }
  const fields = entry.fieldsArray.map(
    (field) => `  readonly ${field.name}: ${fieldType(field, protobuf)};`,
  );
  const oneofs = entry.oneofsArray
    .filter((oneof) => !oneof.isProto3Optional)
    .map((oneof) => {
      const names = oneof.fieldsArray.map((field) => JSON.stringify(field.name));
      return `  readonly ${oneof.name}?: ${names.join(" | ")} | undefined;`;
    });
  return [
    `export interface ${entry.name} {`,
    ...fields,
    ...oneofs,
    "}",
    `export declare const ${entry.name}: MessageCodec<${entry.name}>;`,
  ];
}

/**
 * Names inside a package are re-exported flat, so that every codec file is used in the same way.
 */
function flatExports(root, protobuf) {
  const lines = [];
  for (const entry of typesOf(root, protobuf)) {
    if (entry.parent === root) continue;
    const path = entry.fullName.slice(1).split(".");
    const [first, ...rest] = path;
    lines.push(`export const ${entry.name} = ${[first, ...rest].join(".")};`);
  }
  return lines.join("\n");
}

function shapeOfEnum(entry) {
  const value = Object.entries(entry.values).map(([name, number]) => ({ name, number }));
  return { name: entry.name, value };
}

function shapeOfField(field, oneofIndex) {
  const type = field.resolvedType;
  const isEnum = type !== null && type.values !== undefined;
  const shape = {
    name: field.name,
    number: field.id,
    label: field.repeated ? 3 : 1,
    type: type === null ? DESCRIPTOR_TYPES[field.type] : isEnum ? 14 : 11,
    jsonName: field.name,
  };
  if (type !== null) shape.typeName = type.fullName;
  if (oneofIndex !== undefined) shape.oneofIndex = oneofIndex;
  if (field.options?.proto3_optional) shape.proto3Optional = true;
  return shape;
}

/**
 * The DescriptorProto of a message. Real oneofs come before the synthetic ones of optional fields,
 * as protoc has it.
 */
function shapeOfMessage(entry, protobuf) {
  const oneofs = [...entry.oneofsArray];
  oneofs.sort((a, b) => Number(a.isProto3Optional) - Number(b.isProto3Optional));
  const field = entry.fieldsArray.map((one) =>
    shapeOfField(one, one.partOf ? oneofs.indexOf(one.partOf) : undefined),
  );
  const nested = entry.nestedArray;
  const reserved = (entry.reserved ?? []).filter((range) => Array.isArray(range));
  return {
    name: entry.name,
    field,
    nestedType: nested
      .filter((one) => one instanceof protobuf.Type)
      .map((one) => shapeOfMessage(one, protobuf)),
    enumType: nested.filter((one) => one instanceof protobuf.Enum).map(shapeOfEnum),
    oneofDecl: oneofs.map((oneof) => ({ name: oneof.name })),
    reservedRange: reserved.map(([start, end]) => ({ start, end: end + 1 })),
  };
}

function shapeOfService(service) {
  const method = service.methodsArray.map((one) => ({
    name: one.name,
    inputType: one.resolve().resolvedRequestType.fullName,
    outputType: one.resolvedResponseType.fullName,
    clientStreaming: one.requestStream === true,
    serverStreaming: one.responseStream === true,
  }));
  return { name: service.name, method };
}

/** The FileDescriptorProto of one file, as bytes, with the symbols that it defines. */
function describeFile(root, path, dependency, protobuf, descriptorType) {
  const shape = { name: path, dependency, messageType: [], enumType: [], service: [] };
  const symbols = [];
  const services = [];
  const visit = (namespace) => {
    for (const entry of namespace.nestedArray) {
      const isType = entry instanceof protobuf.Type;
      const isEnum = entry instanceof protobuf.Enum;
      const isService = entry instanceof protobuf.Service;
      if (!isType && !isEnum && !isService) {
        shape.package = entry.fullName.slice(1);
        visit(entry);
        continue;
      }
      if (!entry.filename?.endsWith(`proto/${path}`)) continue;
      if (isType) shape.messageType.push(shapeOfMessage(entry, protobuf));
      if (isEnum) shape.enumType.push(shapeOfEnum(entry));
      if (isService) {
        shape.service.push(shapeOfService(entry));
        services.push(entry.fullName.slice(1));
        symbols.push(...entry.methodsArray.map((method) => method.fullName.slice(1)));
      }
      symbols.push(entry.fullName.slice(1));
      const nested = isType ? [...typesOf(entry, protobuf)] : [];
      symbols.push(...nested.map((type) => type.fullName.slice(1)));
      // Values of an enum live beside it, not in it.
      const scope = entry.fullName.slice(1, entry.fullName.lastIndexOf(".") + 1);
      const values = isEnum ? Object.keys(entry.values) : [];
      symbols.push(...values.map((value) => scope + value));
    }
  };
  visit(root);
  shape.syntax = "proto3";
  const bytes = descriptorType.encode(descriptorType.fromObject(shape)).finish();
  return { path, dependency, services, symbols, base64: Buffer.from(bytes).toString("base64") };
}

function typesText(root, protobuf) {
  const lines = ['import type { Int64Halves, MessageCodec } from "../codec.js";', ""];
  for (const entry of typesOf(root, protobuf)) lines.push(...declareType(entry, protobuf), "");
  // A file without 64-bit fields does not use the first import; the interface keeps it used.
  lines.push("export type { Int64Halves };", "");
  return lines.join("\n");
}

function typesOfDescriptors(header) {
  const type = 'import type { FileDescription } from "../codec.js";';
  return `${header}${type}\nexport declare const FILE_DESCRIPTIONS: readonly FileDescription[];\n`;
}

/** Generates what is stale; called by the build. Returns nothing. */
export async function generate({ root, isStale, filesBelow }) {
  const proto = join(root, "proto");
  const output = join(root, "src", "proto", "generated");
  const stamp = join(output, "descriptors.js");
  const inputs = filesBelow(proto, [".proto"]);
  inputs.push(fileURLToPath(import.meta.url));
  if (existsSync(stamp) && !isStale(stamp, inputs)) return;
  mkdirSync(output, { recursive: true });
  const { default: protobuf } = await import("protobufjs");
  const { default: descriptor } = await import("protobufjs/ext/descriptor.js");
  const { default: pbjs } = await import("protobufjs-cli/pbjs.js");
  const files = new Map();
  for (const [name, file] of Object.entries(SOURCES)) {
    const loaded = new protobuf.Root();
    loaded.resolvePath = (_origin, target) =>
      target.startsWith(proto) ? target : join(proto, target);
    await loaded.load(file, { keepCase: true });
    loaded.resolveAll();
    const header = `// Generated from proto/${file} by scripts/build-proto.mjs; do not edit.\n`;
    const code = await staticCodec(pbjs, proto, name, file);
    writeWhole(join(output, `${name}.js`), `${header}${code}\n${flatExports(loaded, protobuf)}\n`);
    writeWhole(join(output, `${name}.d.ts`), header + typesText(loaded, protobuf));
    for (const path of loaded.files.map((found) => relative(proto, found))) {
      const isOurs = basename(path) === path;
      const dependency = IMPORTS[path] ?? (isOurs ? ["routing.proto"] : []);
      const described = describeFile(
        loaded,
        path,
        dependency,
        protobuf,
        descriptor.FileDescriptorProto,
      );
      files.set(path, described);
    }
  }
  const header = "// Generated from proto/ by scripts/build-proto.mjs; do not edit.\n";
  const list = JSON.stringify([...files.values()], null, 2);
  writeWhole(join(output, "descriptors.d.ts"), typesOfDescriptors(header));
  writeWhole(stamp, `${header}export const FILE_DESCRIPTIONS = ${list};\n`);
  // The stamp is written last and must be newer than every input, also on coarse clocks.
  const now = new Date();
  utimesSync(stamp, now, now);
}
