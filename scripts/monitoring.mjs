/**
 * Writes what is made of other files for monitoring: the Grafana dashboard from the table below, and the alert rules once more
 * as the object that the operator of Prometheus takes. With `--check` it only says which of them is not as it should be; a test
 * asks that, and holds each query against the families of docs/metrics.md.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "./build.mjs";

const NODES = 'job="$job",instance=~"$instance"';
const rate = (family, labels = "") => `rate(${family}{${NODES}${labels}}[$__rate_interval])`;
const p99 = (family, by) =>
  `histogram_quantile(0.99, sum by (le, ${by}) (${rate(`${family}_bucket`)}))`;

/** Row, and its panels: title, unit, and queries with their legends. */
const ROWS = [
  [
    "Overview",
    [
      [
        "Ready members",
        "none",
        [
          ['sum(svc_ready{job="$job"})', "ready"],
          ['max(svc_members{job="$job"}) by (role)', "{{role}}"],
        ],
      ],
      [
        "Partitions without leader",
        "none",
        [[`svc_partitions_without_leader{${NODES}}`, "{{instance}}"]],
      ],
      [
        "Requests",
        "reqps",
        [[`sum by (api, operation) (${rate("svc_requests_total")})`, "{{api}} {{operation}}"]],
      ],
      [
        "Requests without a result",
        "reqps",
        [
          [
            `sum by (outcome) (${rate("svc_requests_total", ',api=~"locks|sequences|kv",outcome=~"MustRetry|Aborted|Errored|Error|Refused"')})`,
            "{{outcome}}",
          ],
        ],
      ],
      ["Versions", "none", [['count by (version) (svc_build_info{job="$job"})', "{{version}}"]]],
      [
        "Level",
        "none",
        [
          [`svc_feature_level{${NODES}}`, "{{instance}}"],
          [`svc_feature_level_max{${NODES}}`, "{{instance}} possible"],
        ],
      ],
    ],
  ],
  [
    "Requests",
    [
      [
        "Duration, p99",
        "s",
        [[p99("svc_request_duration_seconds", "api, operation"), "{{api}} {{operation}}"]],
      ],
      ["In progress", "none", [[`svc_inflight_requests{${NODES}}`, "{{instance}}"]]],
      [
        "Answers over HTTP",
        "reqps",
        [[`sum by (route, status) (${rate("svc_http_responses_total")})`, "{{route}} {{status}}"]],
      ],
      [
        "gRPC calls",
        "reqps",
        [[`sum by (method, code) (${rate("svc_grpc_handled_total")})`, "{{method}} {{code}}"]],
      ],
      [
        "Connections and streams",
        "none",
        [
          [`svc_connections{${NODES}}`, "{{instance}} {{listener}}"],
          [`svc_streams{${NODES}}`, "{{instance}} streams"],
        ],
      ],
      [
        "Bytes of clients",
        "Bps",
        [[`sum by (direction) (${rate("svc_client_bytes_total")})`, "{{direction}}"]],
      ],
      [
        "Locks granted and expired, values handed out",
        "ops",
        [
          [`sum(${rate("svc_lock_grants_total")})`, "locks"],
          [`sum(${rate("svc_lock_expiries_total")})`, "locks expired"],
          [`sum(${rate("svc_sequence_values_total")})`, "values"],
        ],
      ],
      [
        "Without good credentials",
        "reqps",
        [[`sum by (listener) (${rate("svc_auth_failures_total")})`, "{{listener}}"]],
      ],
    ],
  ],
  [
    "Consensus",
    [
      ["Commit, p99", "s", [[p99("svc_raft_commit_duration_seconds", "instance"), "{{instance}}"]]],
      [
        "Commands per entry",
        "none",
        [
          [
            `sum(${rate("svc_raft_batch_entries_sum")}) / sum(${rate("svc_raft_batch_entries_count")})`,
            "mean",
          ],
        ],
      ],
      ["Partitions led", "none", [[`svc_partitions_leading{${NODES}}`, "{{instance}}"]]],
      ["Elections", "ops", [[`sum by (result) (${rate("svc_elections_total")})`, "{{result}}"]]],
      ["Proposals", "ops", [[`sum by (result) (${rate("svc_proposals_total")})`, "{{result}}"]]],
      [
        "Reads per proof of leadership",
        "none",
        [
          [
            `sum(${rate("svc_reads_per_round_sum")}) / sum(${rate("svc_reads_per_round_count")})`,
            "mean",
          ],
        ],
      ],
      ["To be applied", "none", [[`svc_apply_lag_entries_max{${NODES}}`, "{{instance}}"]]],
      ["Apply, p99", "s", [[p99("svc_apply_duration_seconds", "instance"), "{{instance}}"]]],
    ],
  ],
  [
    "Storage",
    [
      [
        "Durable write of the log, p99",
        "s",
        [[p99("svc_wal_sync_duration_seconds", "instance"), "{{instance}}"]],
      ],
      [
        "Log written",
        "Bps",
        [[`sum by (instance) (${rate("svc_wal_written_bytes_total")})`, "{{instance}}"]],
      ],
      [
        "Flush of the state store, p99",
        "s",
        [[p99("svc_store_flush_duration_seconds", "instance"), "{{instance}}"]],
      ],
      [
        "Sizes",
        "bytes",
        [
          [`svc_wal_size_bytes{${NODES}}`, "{{instance}} log"],
          [`svc_store_used_bytes{${NODES}}`, "{{instance}} state"],
        ],
      ],
      [
        "Rows",
        "none",
        [
          [`sum by (instance, kind) (svc_rows{${NODES}})`, "{{instance}} {{kind}}"],
          [`sum(svc_locks_held{${NODES}})`, "locks held"],
        ],
      ],
      ["Free", "bytes", [[`svc_storage_free_bytes{${NODES}}`, "{{instance}} {{volume}}"]]],
      [
        "Full",
        "none",
        [
          [`svc_wal_full{${NODES}}`, "{{instance}} log"],
          [`svc_storage_short{${NODES}}`, "{{instance}} volume of the {{volume}}"],
          [`svc_store_full{${NODES}}`, "{{instance}} state"],
        ],
      ],
    ],
  ],
  [
    "Peers",
    [
      ["Linked", "none", [[`svc_peer_linked{${NODES}}`, "{{instance}} to {{peer}}"]]],
      [
        "Round trip, p99",
        "s",
        [[p99("svc_peer_round_trip_seconds", "instance, peer"), "{{instance}} to {{peer}}"]],
      ],
      [
        "Bytes",
        "Bps",
        [
          [`sum by (instance) (${rate("svc_peer_sent_bytes_total")})`, "{{instance}} sent"],
          [`sum by (instance) (${rate("svc_peer_received_bytes_total")})`, "{{instance}} received"],
        ],
      ],
      [
        "Snapshots",
        "ops",
        [
          [
            `sum by (direction, result) (${rate("svc_snapshots_total")})`,
            "{{direction}} {{result}}",
          ],
        ],
      ],
      [
        "Under-replicated partitions",
        "none",
        [['max(svc_partitions_under_replicated{job="$job"})', "partitions"]],
      ],
      [
        "Moves of replicas",
        "ops",
        [[`sum by (class, result) (${rate("svc_placement_moves_total")})`, "{{class}} {{result}}"]],
      ],
    ],
  ],
  [
    "Process",
    [
      ["Processor", "percentunit", [[rate("process_cpu_seconds_total"), "{{instance}}"]]],
      [
        "Memory",
        "bytes",
        [
          [`process_resident_memory_bytes{${NODES}}`, "{{instance}}"],
          [`nodejs_heap_used_bytes{${NODES}}`, "{{instance}} heap"],
          [`svc_memory_limit_bytes{${NODES}}`, "{{instance}} limit"],
        ],
      ],
      ["Event loop, p99", "s", [[p99("svc_event_loop_delay_seconds", "instance"), "{{instance}}"]]],
      [
        "Collections of garbage",
        "percentunit",
        [
          [
            `sum by (instance, kind) (${rate("nodejs_gc_duration_seconds_sum")})`,
            "{{instance}} {{kind}}",
          ],
        ],
      ],
      ["Descriptors", "none", [[`process_open_fds{${NODES}}`, "{{instance}}"]]],
      ["Log lines", "ops", [[`sum by (level) (${rate("svc_log_lines_total")})`, "{{level}}"]]],
    ],
  ],
  [
    "Upkeep",
    [
      [
        "Since the last backup",
        "s",
        [['time() - max(svc_backup_last_success_timestamp_seconds{job="$job"})', "age"]],
      ],
      [
        "Certificates end in",
        "s",
        [
          [
            `svc_tls_certificate_expiry_timestamp_seconds{${NODES}} - time()`,
            "{{instance}} {{use}}",
          ],
        ],
      ],
    ],
  ],
];

const SOURCE = { type: "prometheus", uid: "$datasource" };
const WIDTH = 6;
const HEIGHT = 7;

function panel([title, unit, queries], id, x, y) {
  return {
    id,
    type: "timeseries",
    title,
    datasource: SOURCE,
    gridPos: { h: HEIGHT, w: WIDTH, x, y },
    fieldConfig: { defaults: { unit, min: 0 }, overrides: [] },
    options: { legend: { displayMode: "list", placement: "bottom" }, tooltip: { mode: "multi" } },
    targets: queries.map(([expr, legendFormat], at) => ({
      refId: String.fromCharCode(65 + at),
      datasource: SOURCE,
      expr,
      legendFormat,
    })),
  };
}

function panels() {
  const all = [];
  let id = 0;
  let y = 0;
  for (const [title, own] of ROWS) {
    all.push({
      id: ++id,
      type: "row",
      title,
      collapsed: false,
      panels: [],
      gridPos: { h: 1, w: 24, x: 0, y },
    });
    y += 1;
    own.forEach((each, at) => {
      all.push(panel(each, ++id, (at * WIDTH) % 24, y + Math.floor((at * WIDTH) / 24) * HEIGHT));
    });
    y += Math.ceil((own.length * WIDTH) / 24) * HEIGHT;
  }
  return all;
}

const variable = (name, query) => ({
  name,
  type: "query",
  datasource: SOURCE,
  query: { query, refId: name },
  refresh: 2,
  includeAll: name === "instance",
  multi: name === "instance",
});

function dashboard() {
  return {
    uid: "svc",
    title: "svc",
    tags: ["svc"],
    schemaVersion: 39,
    version: 1,
    editable: true,
    refresh: "30s",
    time: { from: "now-1h", to: "now" },
    templating: {
      list: [
        { name: "datasource", type: "datasource", query: "prometheus" },
        variable("job", "label_values(svc_build_info, job)"),
        variable("instance", 'label_values(svc_build_info{job="$job"}, instance)'),
      ],
    },
    panels: panels(),
  };
}

/** The rules as a PrometheusRule: its `spec` is the file. */
function rulesObject() {
  const rules = readFileSync(join(root, "scripts/deploy/monitoring/rules.yaml"), "utf8");
  const indented = rules
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map((line) => `  ${line}\n`);
  const head = [
    "# Made from monitoring/rules.yaml by scripts/monitoring.mjs.",
    "apiVersion: monitoring.coreos.com/v1",
    "kind: PrometheusRule",
    "metadata:",
    "  name: svc",
    "spec:",
  ];
  return `${head.join("\n")}\n${indented.join("")}`;
}

const made = [
  ["scripts/deploy/monitoring/dashboard.json", `${JSON.stringify(dashboard(), null, 2)}\n`],
  ["scripts/deploy/kubernetes/overlays/monitoring/rules.yaml", rulesObject()],
];
const isCheck = process.argv.includes("--check");
for (const [path, text] of made) {
  const place = join(root, path);
  if (!isCheck) writeFileSync(place, text);
  else if (readFileSync(place, "utf8") !== text) {
    process.stdout.write(`${path} is not what scripts/monitoring.mjs makes\n`);
    process.exitCode = 1;
  }
}
