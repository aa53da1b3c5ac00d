/**
 * Bounds the connections of clients that are open. Without a bound a process runs out of file descriptors, and then
 * uWebSockets.js can neither take a connection nor refuse it: it waits without a word, and the service's own as well.
 */
import type { HttpResponse, TemplatedApp } from 'uWebSockets.js';
import type { Figure, Figures } from '../services/read/figures.js';
import type { Logger } from '../telemetry.js';

export interface Connections {
  /** To be called before the app listens. */
  watch(app: TemplatedApp): void;
}

const tellEveryMs = 5000;

/** @param most connections at a time; a further one is closed at once */
export function createConnections(most: number, figures: Figures, logger: Logger): Connections {
  let open = 0;
  let refused = 0;
  let logged = 0;
  let nextAt = Number.NEGATIVE_INFINITY;
  const add = (name: string, help: string, type: Figure['type'], read: () => number): void =>
    figures.add({ name, help, type, read });
  add('connections_open', 'Connections of clients that are open', 'gauge', () => open);
  add(
    'connections_refused_total',
    'Connections closed at once: too many were open',
    'counter',
    () => refused,
  );

  function log(): void {
    if (performance.now() < nextAt) return;
    nextAt = performance.now() + tellEveryMs;
    logger.warn(
      { open: open - 1, refused: refused - logged },
      'connections are refused, too many are open: raise ulimit -n, or start more API processes',
    );
    logged = refused;
  }

  function count(res: HttpResponse, change: number): void {
    open += change;
    if (change < 0 || open <= most) return;
    refused += 1;
    log();
    // Comes back here with -1, before it returns.
    res.close();
  }

  return { watch: (app) => void app.filter(count) };
}
