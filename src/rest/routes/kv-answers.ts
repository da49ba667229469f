/**
 * How key/value answers look on REST (contract 3.4): schemas for the document,
 * writers for the wire.
 *
 * Invariants: 1. `type`, `durability` and `flags` are integers, values are base64. 2. Schema and
 * writer list the same members.
 */
import type {
  KvAnswer,
  KvManyAnswer,
  KvManyItem,
  KvPageAnswer,
  KvPageItem,
} from "../../operations/api/requests.js";
import type { Exchange } from "../http/exchange.js";
import {
  base64OrNull,
  isLongList,
  listPieces,
  listText,
  quoted,
  quotedOrNull,
  routeText,
  servedText,
  stampText,
} from "../json/json-text.js";
import { ROUTE, SERVED, type Schema } from "../http/schemas.js";

const routes: Schema = { list: ROUTE };

export const WRITTEN: Schema = {
  object: { type: "int32", revision: "int64", lastModified: "stamp", ...SERVED },
};
export const GOT: Schema = {
  object: {
    type: "int32",
    value: "base64-or-null",
    revision: "int64",
    expires: "stamp",
    lastModified: "stamp",
    ...SERVED,
  },
};
export const FOUND: Schema = {
  object: {
    type: "int32",
    revision: "int64",
    expires: "stamp",
    lastModified: "stamp",
    ...SERVED,
  },
};
export const MANY_WRITTEN: Schema = {
  object: {
    type: "int32",
    items: {
      list: {
        object: {
          servedFrom: "text-or-null",
          key: "text",
          type: "int32",
          revision: "int64",
          lastModified: "stamp",
          durability: "int32",
          routeIndex: "int32",
        },
      },
    },
    timeElapsedMs: "int32",
    routes,
  },
};
export const MANY_GOT: Schema = {
  object: {
    type: "int32",
    servedFrom: "text-or-null",
    items: {
      list: {
        object: {
          key: "text",
          type: "int32",
          value: "base64-or-null",
          revision: "int64",
          expires: "stamp",
          lastModified: "stamp",
          durability: "int32",
          routeIndex: "int32",
        },
      },
    },
    timeElapsedMs: "int32",
    routes,
  },
};

const PAGE_ITEMS: Schema = {
  list: {
    object: {
      key: "text",
      value: "base64-or-null",
      revision: "int64",
      expires: "stamp",
      lastModified: "stamp",
    },
  },
};
export const BUCKET: Schema = {
  object: { type: "int32", items: PAGE_ITEMS, servedFrom: "text-or-null" },
};
export const PAGE: Schema = {
  object: {
    type: "int32",
    items: PAGE_ITEMS,
    servedFrom: "text-or-null",
    nextCursor: "text-or-null",
    hasMore: "bool",
  },
};

export function writtenText(answer: KvAnswer): string {
  return (
    `{"type":${answer.type},"revision":${answer.revision},` +
    `"lastModified":${stampText(answer.lastModified)},${servedText(answer)}}`
  );
}

export function gotText(answer: KvAnswer): string {
  return (
    `{"type":${answer.type},"value":${base64OrNull(answer.value)},` +
    `"revision":${answer.revision},"expires":${stampText(answer.expires)},` +
    `"lastModified":${stampText(answer.lastModified)},${servedText(answer)}}`
  );
}

export function foundText(answer: KvAnswer): string {
  return (
    `{"type":${answer.type},"revision":${answer.revision},` +
    `"expires":${stampText(answer.expires)},` +
    `"lastModified":${stampText(answer.lastModified)},${servedText(answer)}}`
  );
}

function itemEnd(item: KvManyItem): string {
  return `"durability":${item.durability},"routeIndex":${item.routeIndex}}`;
}

function writtenItem(item: KvManyItem): string {
  return (
    `{"servedFrom":${quotedOrNull(item.servedFrom)},"key":${quoted(item.key)},` +
    `"type":${item.type},"revision":${item.revision},` +
    `"lastModified":${stampText(item.lastModified)},${itemEnd(item)}`
  );
}

function readItem(item: KvManyItem, value: string): string {
  return (
    `{"key":${quoted(item.key)},"type":${item.type},"value":${value},` +
    `"revision":${item.revision},"expires":${stampText(item.expires)},` +
    `"lastModified":${stampText(item.lastModified)},${itemEnd(item)}`
  );
}

function manyEnd(answer: KvManyAnswer, exchange: Exchange): string {
  const hints = listText(answer.routes, routeText);
  return `"timeElapsedMs":${exchange.elapsedMs()},"routes":${hints}}`;
}

export function manyWrittenText(answer: KvManyAnswer, _: boolean, exchange: Exchange): string {
  const items = listText(answer.items, writtenItem);
  return `{"type":${answer.type},"items":${items},${manyEnd(answer, exchange)}`;
}

function manyReadText(answer: KvManyAnswer, items: string, exchange: Exchange): string {
  return (
    `{"type":${answer.type},"servedFrom":${quotedOrNull(answer.servedFrom)},` +
    `"items":${items},${manyEnd(answer, exchange)}`
  );
}

export function manyGotText(answer: KvManyAnswer, _: boolean, exchange: Exchange): string {
  const items = listText(answer.items, (item) => readItem(item, base64OrNull(item.value)));
  return manyReadText(answer, items, exchange);
}

export function manyFoundText(answer: KvManyAnswer, _: boolean, exchange: Exchange): string {
  const items = listText(answer.items, (item) => readItem(item, "null"));
  return manyReadText(answer, items, exchange);
}

function pageItem(item: KvPageItem): string {
  return (
    `{"key":${quoted(item.key)},"value":${base64OrNull(item.value)},` +
    `"revision":${item.revision},"expires":${stampText(item.expires)},` +
    `"lastModified":${stampText(item.lastModified)}}`
  );
}

/** What an answer of many items has before and behind them. */
interface Frame {
  readonly start: string;
  readonly end: string;
}

function bucketFrame(answer: KvPageAnswer): Frame {
  const start = `{"type":${answer.type},"items":`;
  return { start, end: `,"servedFrom":${quotedOrNull(answer.servedFrom)}}` };
}

function pageFrame(answer: KvPageAnswer): Frame {
  const { start } = bucketFrame(answer);
  const more = `"nextCursor":${quotedOrNull(answer.nextCursor)},"hasMore":${answer.hasMore}`;
  return { start, end: `,"servedFrom":${quotedOrNull(answer.servedFrom)},${more}}` };
}

function framed(answer: KvPageAnswer, { start, end }: Frame): string {
  return start + listText(answer.items, pageItem) + end;
}

function framedLater(
  answer: KvPageAnswer,
  { start, end }: Frame,
  done: (text: Buffer) => void,
): boolean {
  if (!isLongList(answer.items)) return false;
  listPieces(answer.items, pageItem, (pieces) => {
    done(Buffer.concat([Buffer.from(start), ...pieces, Buffer.from(end)]));
  });
  return true;
}

export function bucketText(answer: KvPageAnswer): string {
  return framed(answer, bucketFrame(answer));
}

/** See `DataRouteOptions.writeLater`. */
export function bucketTextLater(answer: KvPageAnswer, done: (text: Buffer) => void): boolean {
  return framedLater(answer, bucketFrame(answer), done);
}

export function pageText(answer: KvPageAnswer): string {
  return framed(answer, pageFrame(answer));
}

/** See `DataRouteOptions.writeLater`. */
export function pageTextLater(answer: KvPageAnswer, done: (text: Buffer) => void): boolean {
  return framedLater(answer, pageFrame(answer), done);
}
