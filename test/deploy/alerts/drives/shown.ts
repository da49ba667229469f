/** Conditions that no node is brought to within a test: a stand-in shows the figures that a node would. */
import type { Drive, Part } from "../drive.js";

interface Shown {
  readonly alert: string;
  readonly series: string;
  readonly before: number;
  readonly bad: number;
  /** What ends it; null: time alone, it is a counter. */
  readonly after: number | null;
  readonly why: string;
}

const SHOWN: readonly Shown[] = [
  {
    alert: "SvcFollowerLag 0",
    series: 'svc_raft_peer_lag_entries{partition="1",peer="2"}',
    ...{ before: 0, bad: 50_001, after: 0 },
    why: "more than 50,000 entries of one partition take minutes to write",
  },
  {
    alert: "SvcApplyLag 0",
    series: "svc_apply_lag_entries_max",
    ...{ before: 0, bad: 10_001, after: 0 },
    why: "a node holds apply back before 10,000 entries wait for it, unless its processor is taken away for long",
  },
  {
    alert: "SvcJointConfiguration 0",
    series: "svc_joint_age_seconds",
    ...{ before: 0, bad: 301, after: 0 },
    why: "five minutes are in the expression itself, not in a time that is shortened",
  },
  {
    alert: "SvcLevelNotFinalized",
    series: "svc_finalization_pending_seconds",
    ...{ before: 0, bad: 48 * 3600 + 1, after: 0 },
    why: "48 hours are in the expression itself, and count from the start of a node",
  },
  {
    alert: "SvcRangeCopyDiffers 0",
    series: "svc_range_verify_failures_total",
    ...{ before: 0, bad: 1, after: null },
    why: "a copy is damaged by a bug only: frames and records have checksums",
  },
];

const driveOf = ({ alert, series, before, bad, after, why }: Shown): Drive => ({
  how: `${series} was ${before} and is ${bad}`,
  alerts: [alert],
  standsIn: why,
  begin: ({ standIn }) => Promise.resolve(standIn.put(series, bad)),
  end: ({ standIn }) => Promise.resolve(standIn.put(series, after ?? bad)),
});

export const STOOD_IN: Part = {
  name: "what a stand-in shows",
  flags: () => [],
  prepare: ({ standIn }) => {
    standIn.put("svc_ready", 1);
    for (const { series, before } of SHOWN) standIn.put(series, before);
    return Promise.resolve();
  },
  start: null,
  drives: SHOWN.map(driveOf),
};
