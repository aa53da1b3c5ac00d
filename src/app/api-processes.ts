/** Several API processes behind one port, started and watched by one; they speak over Node's own channel. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import type { Config } from '../config.js';
import { supervise } from '../embedded/supervisor.js';
import { inTime } from '../lifecycle.js';
import { programPath } from '../programs.js';
import type { Engine } from './engine.js';
import type { CollectedFigures, Metrics } from './metrics.js';

/** What a process gets when it starts: not by its environment or arguments, where others can read it. */
export interface ApiProcessSettings {
  /** From 1 on. */
  readonly number: number;
  readonly config: Config;
  readonly endpoints: Engine['endpoints'];
}

/** What a process says when it serves. */
export const readyMessage = 'ready';

const beatMs = 1000;
/** So many beats without an answer, and the process hangs. Beats are counted: who stood still himself sent none. */
const maxUnanswered = 15;
/** How long a process may take to send its figures, and the one that asked waits for all. */
const collectMs = 1500;
const askMs = 3000;

/** Resolves when all of them serve; one that dies or hangs is started again. */
export async function startApiProcesses(
  { endpoints, logger, closers }: Engine,
  config: Config,
  stalled: () => string | null,
  metrics: Metrics,
): Promise<void> {
  const watches = new Map<number, ReturnType<typeof watchChild>>();
  let hung = 0;
  metrics.add(
    'api_processes_answering',
    () => [...watches.values()].filter((watch) => watch.answering()).length,
  );
  metrics.add('api_processes_hung_total', () => hung);
  const collectAll = async (): Promise<CollectedFigures[]> => {
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
        const stdio = ['ignore', 'inherit', 'inherit', 'ipc'] as const;
        const child = fork(programPath('api-process.js'), { detached: true, stdio: [...stdio] });
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

/** A child gives up by itself where Redis is unavailable; one that says nothing at all for so long hangs. */
const readyLimitMs = 120_000;

/** @throws Error where the child says something else, or nothing in time */
export async function untilReady(
  child: ChildProcess,
  signal: AbortSignal,
  limitMs = readyLimitMs,
): Promise<void> {
  const late = AbortSignal.timeout(limitMs);
  const heard = once(child, 'message', { signal: AbortSignal.any([signal, late]) });
  const [message] = await heard.catch((error: unknown) => {
    throw late.aborted ? new Error(`an API process was not ready within ${limitMs / 1000} s`) : error;
  });
  if (message !== readyMessage)
    throw new Error(`unexpected message from an API process: ${JSON.stringify(message)}`);
}

/**
 * The port for several processes: 0 becomes a free one. The option by which they share it would share it with strangers
 * too, so it is tried alone first. @throws when somebody listens on it
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

/** `beat` wants a beat back, and says why consumers do not move; `ask` wants a reply: figures of the one who is asked. */
type Message =
  | { readonly kind: 'beat'; readonly stalled: string | null }
  | { readonly kind: 'ask'; readonly id: number }
  | { readonly kind: 'reply'; readonly id: number; readonly figures: readonly CollectedFigures[] };

/** Ends a child that hangs: whoever watches over it starts another. */
function watchChild(
  child: ChildProcess,
  stalled: () => string | null,
  collectAll: () => Promise<readonly CollectedFigures[]>,
  onHung: (pid: number | undefined) => void,
) {
  let unanswered = 0;
  const link = openLink(child, collectAll, () => {
    unanswered = 0;
  });
  const timer = setInterval(() => {
    unanswered += 1;
    if (unanswered <= maxUnanswered) return link.send({ kind: 'beat', stalled: stalled() });
    clearInterval(timer);
    onHung(child.pid);
    child.kill('SIGKILL');
  }, beatMs);
  child.once('exit', () => clearInterval(timer));
  return {
    answering: () => child.exitCode === null && child.signalCode === null && unanswered < 3,
    /** Empty where it does not reply in time. */
    collect: () => link.ask(collectMs),
  };
}

/** @param collect figures of this process */
export function linkToParent(collect: () => Promise<CollectedFigures>) {
  let stalled: string | null = null;
  const link = openLink(
    process,
    async () => [await collect()],
    (message) => {
      if (message.kind !== 'beat') return;
      stalled = message.stalled;
      link.send({ kind: 'beat', stalled: null });
    },
  );
  return {
    /** What the process that started this one says of its consumers. */
    stalled: () => stalled,
    /** Figures of all processes; empty where they do not come in time. */
    collectAll: () => link.ask(askMs),
  };
}

/** @param reply figures for the other side @param hear is called for every message */
function openLink(
  channel: ChildProcess | NodeJS.Process,
  reply: () => Promise<readonly CollectedFigures[]>,
  hear: (message: Message) => void,
) {
  const asked = new Map<number, (figures: readonly CollectedFigures[]) => void>();
  let last = 0;
  const send = (message: Message): void => {
    // Without a channel the other side is gone: its end is noticed.
    if (channel.connected) channel.send?.(message, undefined, undefined, () => undefined);
  };
  channel.on('message', (message: Message) => {
    hear(message);
    if (message.kind === 'reply') asked.get(message.id)?.(message.figures);
    if (message.kind === 'ask')
      void reply().then((figures) => send({ kind: 'reply', id: message.id, figures }));
  });
  return {
    send,
    ask: (limitMs: number): Promise<readonly CollectedFigures[]> => {
      const id = ++last;
      const figures = new Promise<readonly CollectedFigures[]>((resolve) => asked.set(id, resolve));
      send({ kind: 'ask', id });
      return inTime(figures, limitMs)
        .catch(() => [])
        .finally(() => asked.delete(id));
    },
  };
}
