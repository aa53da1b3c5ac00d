/** Label values are few and fixed, without input from callers. */

/** Without the prefix `skilltrace_`. Counters end in `_total`, times in `_seconds`. */
export const metricDescriptions = {
  http_requests_total: 'Responses, by route and status.',
  http_request_duration_seconds: 'Seconds from the request head to the end of the response, by route.',
  defects_total:
    'Requests, answers in batches and learners in class requests that failed with an internal error or an unreadable record.',
  connections_open: 'Open client connections.',
  connections_refused_total: 'Client connections closed because too many were open.',
  unread_answers_bytes: 'Bytes of responses that clients have not read yet.',
  unread_answers_cut_total:
    'Responses aborted because the client stopped reading while the buffer for unread responses was full.',
  answers_total: 'Processed learning events, by outcome.',
  lanes_waiting: 'Requests with answers that wait for a worker thread.',
  worker_threads: 'Worker threads that count answers and compute forecasts.',
  api_processes_answering: 'API processes that respond to heartbeats of the parent process.',
  api_processes_hung_total: 'API processes that were killed and restarted because they did not respond.',
  redis_up: '1 if Redis responds, otherwise 0.',
  redis_memory_bytes: 'Used memory and memory limit (0: none) of the fullest Redis node, in bytes.',
  clickhouse_up: '1 if ClickHouse responds, otherwise 0.',
  clickhouse_restarts_total: 'Restarts of the embedded ClickHouse, by reason.',
  outbox_length: 'Answers that are not in ClickHouse yet.',
  erasures_due: 'Erasures that are not applied in ClickHouse yet.',
  oldest_pending_seconds: 'Age of the oldest answer that is not in ClickHouse yet, in seconds.',
  journal_length: 'Goals, catalogue changes and forecasts that are not in ClickHouse yet.',
  parked_rows: 'Parked rows: ClickHouse rejects their content.',
  webhooks_total: 'Confirmed and failed webhook attempts, and messages given up, by outcome.',
  webhook_events_waiting: 'Events that are not dispatched to webhooks yet.',
  stalls_total: 'Stalls of a consumer: 20 s without progress although work is pending.',
  restarts_total: 'Restarts of a stalled consumer.',
  audit_last_time_seconds: 'End of the last audit, in Unix seconds.',
  audit_duration_seconds: 'Duration of the last audit, in seconds.',
  audit_not_compared: 'Comparisons that the last audit could not complete.',
  audit_mismatches: 'Mismatches that the last audit found, by kind. Investigate any value above 0.',
} as const;

export type MetricName = keyof typeof metricDescriptions;

export interface MetricSample {
  readonly value: number;
  readonly labels?: Readonly<Record<string, string>>;
  /** Series of a histogram, if not named like the metric. */
  readonly metricName?: string;
}

/** A number is a sample without labels. A metric that rejects is omitted. */
export type MetricReader = () => number | readonly MetricSample[] | Promise<number | readonly MetricSample[]>;

export interface MetricRegistry {
  /** @param read settles in bounded time @throws Error for a duplicate name */
  add(name: MetricName, read: MetricReader): void;
}
