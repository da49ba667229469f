/**
 * The standard reflection service (grpc.reflection.v1): the service's own .proto files as
 * descriptors.
 *
 * Owns nothing but an index of the generated descriptors. Invariants: 1. Every request gets one
 * response, in order. 2. A file comes with its imports. 3. A symbol that two files define
 * (TYPE_NONE) is found in the first of them.
 */
import { decodeMessage, encodeMessage, type Encodable } from "../../proto/codec.js";
import { FILE_DESCRIPTIONS } from "../../proto/generated/descriptors.js";
import {
  ServerReflectionRequest,
  ServerReflectionResponse,
} from "../../proto/generated/reflection.js";
import { malformedRequest } from "../calls/runtime.js";
import type { Call, CallHandler } from "../h2/call.js";
import { Status } from "../h2/constants.js";

type Response = Encodable<ServerReflectionResponse>;
type Description = (typeof FILE_DESCRIPTIONS)[number];

const byPath = new Map(FILE_DESCRIPTIONS.map((file) => [file.path, file]));
const bySymbol = new Map<string, Description>();
for (const file of FILE_DESCRIPTIONS) {
  for (const symbol of file.symbols) if (!bySymbol.has(symbol)) bySymbol.set(symbol, file);
}

/** Full names of all services that can be described. */
export const SERVICE_NAMES: readonly string[] = FILE_DESCRIPTIONS.flatMap((file) => file.services);

function notFound(what: string): Response {
  const text = `${what} is not known`;
  return { error_response: { error_code: Status.NOT_FOUND, error_message: text } };
}

function withImports(file: Description): Response {
  const files = [file];
  for (const path of file.dependency) {
    const imported = byPath.get(path);
    if (imported !== undefined) files.push(imported);
  }
  const bytes = files.map((one) => Buffer.from(one.base64, "base64"));
  return { file_descriptor_response: { file_descriptor_proto: bytes } };
}

function respond(request: ServerReflectionRequest): Response {
  switch (request.message_request) {
    case "list_services": {
      const service = SERVICE_NAMES.map((name) => ({ name }));
      return { list_services_response: { service } };
    }
    case "file_by_filename": {
      const file = byPath.get(request.file_by_filename ?? "");
      return file === undefined ? notFound("the file") : withImports(file);
    }
    case "file_containing_symbol": {
      const file = bySymbol.get(request.file_containing_symbol ?? "");
      return file === undefined ? notFound("the symbol") : withImports(file);
    }
    case "file_containing_extension":
      return notFound("the extension");
    case "all_extension_numbers_of_type": {
      const name = request.all_extension_numbers_of_type ?? "";
      if (!bySymbol.has(name)) return notFound("the type");
      return { all_extension_numbers_response: { base_type_name: name } };
    }
    case undefined: {
      const text = "the request asks for nothing";
      return { error_response: { error_code: Status.INVALID_ARGUMENT, error_message: text } };
    }
  }
}

/** Serves one reflection stream. The next request is read when the last response is taken. */
export function reflect(call: Call): CallHandler {
  return {
    message: (bytes) => {
      const request = decodeMessage(ServerReflectionRequest, bytes);
      if (request === null) {
        call.fail(malformedRequest());
        return;
      }
      const response = {
        valid_host: request.host,
        original_request: { host: request.host, ...originalOf(request) },
        ...respond(request),
      };
      if (!call.send(encodeMessage(ServerReflectionResponse, response))) call.pause();
    },
    halfClosed: () => call.end(),
    taken: () => call.resume(),
    gone: () => undefined,
  };
}

/** The one question of a request, for the copy of it in the response. */
function originalOf(request: ServerReflectionRequest): Encodable<ServerReflectionRequest> {
  const question = request.message_request;
  return question === undefined ? {} : { [question]: request[question] };
}
