/**
 * All checkers of backups and restores, and what the world went through for them.
 */
import { CUT_PAUSE_MAX_MS } from "../../../src/base/limits.js";
import { AcknowledgedIncluded } from "../../judge/checkers/backups/acknowledged-included.js";
import { ChainHonest } from "../../judge/checkers/backups/chain-honest.js";
import { CutClosed } from "../../judge/checkers/backups/cut-closed.js";
import { CutIsPrefix } from "../../judge/checkers/backups/cut-is-prefix.js";
import { DigestEqual } from "../../judge/checkers/backups/digest-equal.js";
import { ForcedMap } from "../../judge/checkers/backups/forced-map.js";
import { GcSafe } from "../../judge/checkers/backups/gc-safe.js";
import { HoldsEnd } from "../../judge/checkers/backups/holds-end.js";
import { IncarnationsApart } from "../../judge/checkers/backups/incarnations-apart.js";
import { PauseBounded } from "../../judge/checkers/backups/pause-bounded.js";
import { PublishedWhole } from "../../judge/checkers/backups/published-whole.js";
import { RestoredHistory } from "../../judge/checkers/backups/restored-history.js";
import { StampsSplit } from "../../judge/checkers/backups/stamps-split.js";
import { StrangersApart } from "../../judge/checkers/backups/strangers-apart.js";
import { TargetUntouched } from "../../judge/checkers/backups/target-untouched.js";
import { TokensRise } from "../../judge/checkers/backups/tokens-rise.js";
import { Findings, type Verdict } from "../../judge/checkers/verdict.js";

/** Slowest clock of a world, and how often pauses are looked at (ms). */
const CLOCK_SLOW = 0.05;
const LOOK_MS = 20;

export class BackupChecks {
  readonly prefix = new CutIsPrefix();
  readonly closed = new CutClosed();
  readonly split = new StampsSplit();
  readonly acknowledged = new AcknowledgedIncluded();
  readonly digests = new DigestEqual();
  readonly forcedMap = new ForcedMap();
  readonly restored = new RestoredHistory();
  readonly tokens = new TokensRise();
  readonly incarnations = new IncarnationsApart();
  readonly whole = new PublishedWhole();
  readonly honest = new ChainHonest();
  readonly pauses = new PauseBounded(CUT_PAUSE_MAX_MS * (1 + CLOCK_SLOW) + 3 * LOOK_MS);
  readonly holds = new HoldsEnd();
  readonly collection = new GcSafe();
  readonly targets = new TargetUntouched();
  readonly strangers = new StrangersApart();
  /** What the world went through. */
  readonly went = new Findings("what backups went through", {});

  get all(): readonly { verdict(): Verdict }[] {
    const { prefix, closed, split, acknowledged, digests, restored, tokens, incarnations } = this;
    const ofCuts = [prefix, closed, split, acknowledged, digests, this.pauses];
    const ofRestores = [
      restored,
      this.forcedMap,
      tokens,
      incarnations,
      this.targets,
      this.strangers,
    ];
    const ofFiles = [this.whole, this.honest, this.collection, this.holds];
    return [...ofCuts, ...ofRestores, ...ofFiles, this.went];
  }
}
