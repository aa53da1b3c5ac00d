/** Counts answers by route and status, and how long they took: a few additions for each. */
import type { Figures, Sample } from '../services/read/figures.js';

/** Counts for one route. */
export interface RouteFigures {
  readonly path: string;
  readonly method: string;
  readonly statuses: Map<number, number>;
  /** By `latencyBounds`, and one more for what took longer. */
  readonly buckets: number[];
  seconds: number;
}

/** Upper bounds in seconds: from what a single answer takes to what a caller waits for at most. */
const latencyBounds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20];

const latencyName = 'http_request_duration_seconds';

export type RequestFigures = ReturnType<typeof createRequestFigures>;

export function createRequestFigures(figures: Figures) {
  const routes: RouteFigures[] = [];
  let defects = 0;
  figures.add({
    name: 'http_requests_total',
    help: 'Requests that were answered, by route and status',
    type: 'counter',
    read: () => routes.flatMap(statusSamples),
  });
  figures.add({
    name: latencyName,
    help: 'Time from the head of a request to its answer, by route',
    type: 'histogram',
    read: () => routes.filter(({ statuses }) => statuses.size > 0).flatMap(latencySamples),
  });
  figures.add({
    name: 'defects_total',
    help: 'Requests, answers of a batch and learners of a class that failed by a defect or an unreadable record',
    type: 'counter',
    read: () => defects,
  });
  return {
    /** Requests, or parts of one that is answered in parts. */
    noteDefects: (count: number): void => {
      defects += count;
    },
    /** @param path template of the route; a fixed word where there is none, never what the caller sent */
    of: (method: string, path: string): RouteFigures => {
      const route: RouteFigures = {
        method,
        path,
        statuses: new Map(),
        buckets: latencyBounds.map(() => 0),
        seconds: 0,
      };
      route.buckets.push(0);
      routes.push(route);
      return route;
    },
  };
}

/** @param ms milliseconds that the answer took */
export function noteAnswer(route: RouteFigures, status: number, ms: number): void {
  const { statuses, buckets } = route;
  statuses.set(status, (statuses.get(status) ?? 0) + 1);
  route.seconds += ms / 1000;
  let bucket = 0;
  while (bucket < latencyBounds.length && ms > (latencyBounds[bucket] as number) * 1000) bucket += 1;
  buckets[bucket] = (buckets[bucket] as number) + 1;
}

const statusSamples = ({ method, path, statuses }: RouteFigures): Sample[] =>
  [...statuses].map(([status, value]) => ({ value, labels: { method, route: path, status: `${status}` } }));

function latencySamples({ method, path, buckets, seconds }: RouteFigures): Sample[] {
  const labels = { method, route: path };
  let count = 0;
  const cumulated = buckets.map((inBucket, i): Sample => {
    count += inBucket;
    const le = `${latencyBounds[i] ?? '+Inf'}`;
    return { metricName: `${latencyName}_bucket`, labels: { ...labels, le }, value: count };
  });
  return [
    ...cumulated,
    { metricName: `${latencyName}_sum`, labels, value: seconds },
    { metricName: `${latencyName}_count`, labels, value: count },
  ];
}
