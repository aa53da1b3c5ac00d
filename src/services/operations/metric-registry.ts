/** Label values are few and fixed, without input from callers. */

/** Without the prefix `skilltrace_`. Counters end in `_total`, times in `_seconds`. */
export const metricDescriptions = {
  http_requests_total: 'Requests that were answered, by route and status',
  http_request_duration_seconds: 'Time from the head of a request to its answer, by route',
  defects_total:
    'Requests, answers of a batch and learners of a class that failed by a defect or an unreadable record',
  connections_open: 'Connections of clients that are open',
  connections_refused_total: 'Connections closed at once: too many were open',
  unread_answers_bytes: 'What is kept of answers that their readers have not taken yet',
  unread_answers_cut_total:
    'Answers whose readers stood still while too much was kept for all, so that their connections were cut',
  answers_total: 'Events that were judged, by what became of them',
  lanes_waiting: 'Requests with answers that wait for a worker thread',
  worker_threads: 'Threads that count answers and compute forecasts',
  api_processes_answering: 'API processes that serve and answer the one that started them',
  api_processes_hung_total: 'API processes that hung and were ended, to be started again',
  redis_up: '1 when Redis answers, else 0',
  redis_memory_bytes: 'Memory of the Redis that is nearest to its limit, used and limit (0: none)',
  clickhouse_up: '1 when ClickHouse answers, else 0',
  clickhouse_restarts_total: 'How often the embedded ClickHouse was started again, by why it ended',
  outbox_length: 'Answers that are not in ClickHouse yet',
  erasures_due: 'Learners to be erased whose rows are on their way out of ClickHouse',
  oldest_pending_seconds: 'Age of the oldest answer that is not in ClickHouse yet',
  journal_length: 'Goals, catalogue changes and forecasts that are not in ClickHouse yet',
  parked_rows: 'Rows that were put aside because ClickHouse refuses their content',
  webhooks_total: 'Tries to send a webhook that were confirmed or failed, and messages that were given up',
  webhook_events_waiting: 'Events that are not messages to endpoints yet',
  stalls_total: 'How often a consumer did not move for 20 s with work waiting',
  restarts_total: 'How often a consumer that did not move was restarted',
  audit_last_time_seconds: 'When the last audit ended, Unix time',
  audit_duration_seconds: 'How long the last audit took',
  audit_not_compared: 'What the last audit could not compare',
  audit_mismatches: 'Mismatches that the last audit found, by kind; anything but 0 wants a look',
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
