/**
 * The shapes of all data requests, as they are forwarded to the node that leads.
 *
 * Pure. Numbers and members stand in the table of kinds.
 */
import { type Kinds, numbered } from "../../base/shape.js";
import { type DataRequest, KINDS } from "../api/requests.js";

/** The kinds of data requests, with their numbers. */
export const DATA_REQUEST_KINDS: Kinds<DataRequest> = numbered<DataRequest>(KINDS);
