import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import type { Config } from '../../config.js';
import { supervise } from '../../embedded/supervisor.js';
import { withTimeout } from '../../lifecycle.js';
import { resolveProgram } from '../../programs.js';
import type { CollectedMetrics, Metrics } from '../operations/metrics.js';
import type { Engine } from '../startup/engine.js';

/** Sent over IPC: other users can read the environment and arguments of a process. */
export interface ApiProcessSettings {
  readonly number: number;
  readonly config: Config;
  readonly endpoints: Engine['endpoints'];
}

export const readyMessage = 'ready';

/** A child exits if Redis is unavailable. Only a hanging child is silent for this long. */
const readyTimeoutMs = 120_000;
const heartbeatMs = 1000;
/** Heartbeats are counted instead of time, because a suspended parent sends none. */
const killAfterMissed = 15;
const unresponsiveAfterMissed = 3;
const collectMs = 1500;
const collectAllMs = 3000;

type StallCheck = () => string | null;
type AllMetrics = readonly CollectedMetrics[];

/** Resolves when all processes accept requests. Restarts a process that dies or hangs. */
export async function startApiProcesses(
  { endpoints, logger, closers }: Engine,
  config: Config,
  stallReason: StallCheck,
  metrics: Metrics,
): Promise<void> {
  const watches = new Map<number, ReturnType<typeof watchChild>>();
  let hung = 0;
  metrics.add(
    'api_processes_answering',
    () => [...watches.values()].filter((watch) => watch.isResponsive()).length,
  );
  metrics.add('api_processes_hung_total', () => hung);
  const collectAll = async (): Promise<AllMetrics> => {
    const children = [...watches.values()].map((watch) => watch.collect());
    const [own, ...others] = await Promise.all([metrics.collect(), ...children]);
    return [own, ...others.flat()];
  };
  const processes = Array.from({ length: config.apiProcesses }, (_, i) => {
    const name = `API process ${i + 1}`;
    const onHung = (pid: number | undefined): void => {
      hung += 1;
      logger.error({ child: pid }, `${name} does not respond; it is killed and restarted`);
    };
    return supervise({
      ...{ name, logger },
      spawn: () => {
        const child = fork(resolveProgram('api-process.js'), {
          detached: true,
          stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
        });
        const settings: ApiProcessSettings = { number: i + 1, config, endpoints };
        if (child.pid !== undefined) child.send(settings);
        return child;
      },
      ready: async (child, signal) => {
        await waitUntilReady(child, signal);
        watches.set(i, watchChild(child, stallReason, collectAll, onHung));
      },
    });
  });
  closers.add('API processes', (limitMs) => Promise.all(processes.map((process) => process.stop(limitMs))));
  await Promise.all(processes.map(({ ready }) => ready));
}

export async function waitUntilReady(child: ChildProcess, signal: AbortSignal, limitMs = readyTimeoutMs) {
  const timeout = AbortSignal.timeout(limitMs);
  const firstMessage = once(child, 'message', { signal: AbortSignal.any([signal, timeout]) });
  const [message] = await firstMessage.catch((error: unknown) => {
    throw timeout.aborted ? new Error(`an API process was not ready within ${limitMs / 1000} s`) : error;
  });
  if (message !== readyMessage)
    throw new Error(`unexpected message from an API process: ${JSON.stringify(message)}`);
}

/**
 * @returns `port`, or a free port for 0. Probes with an exclusive listener, because a shared port also admits
 * other programs.
 * @throws if the port is taken
 */
export async function findPort(host: string, port: number): Promise<number> {
  const probe = createServer();
  probe.listen({ host, port, exclusive: true });
  await once(probe, 'listening');
  const { port: found } = probe.address() as AddressInfo;
  probe.close();
  await once(probe, 'close');
  return found;
}

function watchChild(
  child: ChildProcess,
  stallReason: StallCheck,
  collectAll: () => Promise<AllMetrics>,
  onHung: (pid: number | undefined) => void,
) {
  let missedHeartbeats = 0;
  const sendRequest = openLink(child, collectAll);
  const sendHeartbeat = async (): Promise<void> => {
    const answer = await sendRequest(
      { kind: 'heartbeat', stallReason: stallReason() },
      unresponsiveAfterMissed * heartbeatMs,
    );
    if (answer !== null) missedHeartbeats = 0;
  };
  const timer = setInterval(() => {
    missedHeartbeats += 1;
    if (missedHeartbeats <= killAfterMissed) return void sendHeartbeat();
    clearInterval(timer);
    onHung(child.pid);
    child.kill('SIGKILL');
  }, heartbeatMs);
  child.once('exit', () => clearInterval(timer));
  return {
    isResponsive: () =>
      child.exitCode === null && child.signalCode === null && missedHeartbeats < unresponsiveAfterMissed,
    collect: async () => (await sendRequest({ kind: 'figures' }, collectMs)) ?? [],
  };
}

export function linkToParent(collect: () => Promise<CollectedMetrics>) {
  let stallReason: string | null = null;
  const sendRequest = openLink(process, async (request) => {
    if (request.kind === 'figures') return [await collect()];
    stallReason = request.stallReason;
    return [];
  });
  return {
    stallReason: () => stallReason,
    /** Metrics of all processes; after a timeout, of this process only. */
    collect: async () => (await sendRequest({ kind: 'figures' }, collectAllMs)) ?? [await collect()],
  };
}

type LinkRequest =
  | { readonly kind: 'heartbeat'; readonly stallReason: string | null }
  | { readonly kind: 'figures' };

interface Message {
  readonly id: number;
  readonly request?: LinkRequest;
  readonly reply?: AllMetrics;
}

/** @returns a function that sends a request and resolves with null on timeout */
function openLink(
  channel: ChildProcess | NodeJS.Process,
  handleRequest: (request: LinkRequest) => Promise<AllMetrics>,
): (request: LinkRequest, limitMs: number) => Promise<AllMetrics | null> {
  const pendingReplies = new Map<number, (figures: AllMetrics) => void>();
  let last = 0;
  const send = (message: Message): void => {
    if (channel.connected) channel.send?.(message, undefined, undefined, () => undefined);
  };
  channel.on('message', ({ id, request, reply }: Message) => {
    if (reply !== undefined) pendingReplies.get(id)?.(reply);
    if (request !== undefined) void handleRequest(request).then((figures) => send({ id, reply: figures }));
  });
  return (request, limitMs) => {
    const id = ++last;
    const figures = new Promise<AllMetrics>((resolve) => pendingReplies.set(id, resolve));
    send({ id, request });
    return withTimeout(figures, limitMs)
      .catch(() => null)
      .finally(() => pendingReplies.delete(id));
  };
}
