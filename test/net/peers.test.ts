/** The real links between nodes, on loopback: what every peer port must do, plain and with TLS. */
import t from "tap";
import { peerConformance } from "../conformance/peers.js";
import { RealHarness } from "./world.js";

t.test("plain", async (t) => {
  await peerConformance(t, async () => Promise.resolve(new RealHarness()));
});
