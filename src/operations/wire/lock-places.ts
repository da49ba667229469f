/**
 * Who waits for the locks of a partition, in their order, told to the node that is about to lead it
 * (Q11).
 *
 * Pure. Invariant: a call is bounded as what it tells of is.
 */
import { boolean, bytes, int32, int53, list, nullable, record, text } from "../../base/shape.js";
import { CARRIED_PLACES_MAX, type CarriedPlace } from "../../host/waiting/carried-places.js";

export interface KeepPlacesCall {
  readonly kind: "keep-places";
  readonly partition: number;
  /** Of the leadership that ends. */
  readonly term: number;
  readonly places: readonly CarriedPlace[];
}

export interface PlacesKept {
  readonly kind: "places-kept";
}

const place = record<CarriedPlace>({
  resource: text,
  isEphemeral: boolean,
  owner: bytes,
  expiresMs: int53,
  note: nullable(bytes),
});

export const keepPlaces = {
  partition: int32,
  term: int53,
  places: list(place, CARRIED_PLACES_MAX),
};
