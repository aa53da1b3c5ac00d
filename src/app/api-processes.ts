import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import type { Config } from '../config.js';
import { supervise } from '../embedded/supervisor.js';
import { withTimeout } from '../lifecycle.js';
import { resolveProgram } from '../programs.js';
import type { Engine } from './engine.js';
import type { CollectedFigures, Metrics } from './metrics.js';

/** Sent over IPC: other users can read the environment and arguments of a process. */
export interface ApiProcessSettings {
  readonly number: number;
  readonly config: Config;
  readonly endpoints: Engine['endpoints'];
}

export const readyMessage = 'ready';

/** A child exits if Redis is unavailable. Only a hanging child is silent for this long. */
const readyLimitMs = 120_000;
const beatMs = 1000;
/** Heartbeats are counted instead of time, because a suspended parent sends none. */
const maxUnanswered = 15;
const maxSilent = 3;
const collectMs = 1500;
const collectAllMs = 3000;

type Stalled = () => string | null;
type AllFigures = readonly CollectedFigures[];

/** Resolves when all processes accept requests. Restarts a process that dies or hangs. */
export async function startApiProcesses(
  { endpoints, logger, closers }: Engine,
  config: Config,
  stalled: Stalled,
  metrics: Metrics,
): Promise<void> {
  const watches = new Map<number, ReturnType<typeof watchChild>>();
  let hung = 0;
  metrics.add(
    'api_processes_answering',
    () => [...watches.values()].filter((watch) => watch.answering()).length,
  );
  metrics.add('api_processes_hung_total', () => hung);
  const collectAll = async (): Promise<AllFigures> => {
    const children = [...watches.values()].map((watch) => watch.collect());
    const [own, ...others] = await Promise.all([metrics.collect(), ...children]);
    return [own, ...others.flat()];
  };
  const processes = Array.from({ length: config.apiProcesses }, (_, i) => {
    const name = `API process ${i + 1}`;
    const onHung = (pid: number | undefined): void => {
      hung += 1;
      logger.error({ pid }, `${name} hangs: it is ended and started again`);
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
        await untilReady(child, signal);
        watches.set(i, watchChild(child, stalled, collectAll, onHung));
      },
    });
  });
  closers.add('API processes', (limitMs) => Promise.all(processes.map((process) => process.stop(limitMs))));
  await Promise.all(processes.map(({ ready }) => ready));
}

export async function untilReady(child: ChildProcess, signal: AbortSignal, limitMs = readyLimitMs) {
  const late = AbortSignal.timeout(limitMs);
  const heard = once(child, 'message', { signal: AbortSignal.any([signal, late]) });
  const [message] = await heard.catch((error: unknown) => {
    throw late.aborted ? new Error(`an API process was not ready within ${limitMs / 1000} s`) : error;
  });
  if (message !== readyMessage)
    throw new Error(`unexpected message from an API process: ${JSON.stringify(message)}`);
}

/**
 * @returns a free port for 0. Probes with an exclusive listener, because a shared port also admits other
 * programs.
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
  stalled: Stalled,
  collectAll: () => Promise<AllFigures>,
  onHung: (pid: number | undefined) => void,
) {
  let unanswered = 0;
  const ask = openLink(child, collectAll);
  const beat = async (): Promise<void> => {
    const answer = await ask({ kind: 'beat', stalled: stalled() }, maxSilent * beatMs);
    if (answer !== null) unanswered = 0;
  };
  const timer = setInterval(() => {
    unanswered += 1;
    if (unanswered <= maxUnanswered) return void beat();
    clearInterval(timer);
    onHung(child.pid);
    child.kill('SIGKILL');
  }, beatMs);
  child.once('exit', () => clearInterval(timer));
  return {
    answering: () => child.exitCode === null && child.signalCode === null && unanswered < maxSilent,
    collect: async () => (await ask({ kind: 'figures' }, collectMs)) ?? [],
  };
}

export function linkToParent(collect: () => Promise<CollectedFigures>) {
  let stalled: string | null = null;
  const ask = openLink(process, async (request) => {
    if (request.kind === 'figures') return [await collect()];
    stalled = request.stalled;
    return [];
  });
  return {
    stalled: () => stalled,
    /** Metrics of all processes; after a timeout, of this process only. */
    collect: async () => (await ask({ kind: 'figures' }, collectAllMs)) ?? [await collect()],
  };
}

type Request = { readonly kind: 'beat'; readonly stalled: string | null } | { readonly kind: 'figures' };

interface Message {
  readonly id: number;
  readonly request?: Request;
  readonly reply?: AllFigures;
}

/** @returns sends a request; resolves with null on timeout */
function openLink(
  channel: ChildProcess | NodeJS.Process,
  answer: (request: Request) => Promise<AllFigures>,
): (request: Request, limitMs: number) => Promise<AllFigures | null> {
  const asked = new Map<number, (figures: AllFigures) => void>();
  let last = 0;
  const send = (message: Message): void => {
    if (channel.connected) channel.send?.(message, undefined, undefined, () => undefined);
  };
  channel.on('message', ({ id, request, reply }: Message) => {
    if (reply !== undefined) asked.get(id)?.(reply);
    if (request !== undefined) void answer(request).then((figures) => send({ id, reply: figures }));
  });
  return (request, limitMs) => {
    const id = ++last;
    const figures = new Promise<AllFigures>((resolve) => asked.set(id, resolve));
    send({ id, request });
    return withTimeout(figures, limitMs)
      .catch(() => null)
      .finally(() => asked.delete(id));
  };
}
