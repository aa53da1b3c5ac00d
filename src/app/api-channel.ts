/** What an API process of several and the process that started it say to each other, over Node's own channel. */
import type { ChildProcess } from 'node:child_process';
import { inTime } from '../lifecycle.js';
import type { Logger } from '../telemetry.js';
import type { CollectedFigures } from './metrics.js';

/** `beat` wants a beat back, and says why consumers do not move; `ask` wants a reply: figures of the one who is asked. */
type Message =
  | { readonly kind: 'beat'; readonly stalled: string | null }
  | { readonly kind: 'ask'; readonly id: number }
  | { readonly kind: 'reply'; readonly id: number; readonly figures: readonly CollectedFigures[] };

const beatMs = 1000;
/** So many beats without an answer, and the process hangs. Beats are counted: who stood still himself sent none. */
const maxUnanswered = 15;
/** How long a process may take to send its figures, and the one that asked waits for all. */
const collectMs = 1500;
const askMs = 3000;

export interface ChildWatch {
  readonly answering: () => boolean;
  /** Empty where it does not reply in time. */
  collect(): Promise<readonly CollectedFigures[]>;
}

export interface ChildWatchOptions {
  readonly name: string;
  readonly logger: Logger;
  /** Why the consumers of this process do not move, or null: the child's livez reports it. */
  readonly stalled: () => string | null;
  /** The figures of all processes, for a child that is asked. */
  readonly collectAll: () => Promise<readonly CollectedFigures[]>;
  readonly onHung: () => void;
}

/** Ends a child that hangs: whoever watches over it starts another. */
export function watchChild(child: ChildProcess, options: ChildWatchOptions): ChildWatch {
  let unanswered = 0;
  const post = (message: Message): void => {
    // Without a channel there is no child any more: its end is noticed.
    if (child.connected) child.send(message, () => undefined);
  };
  const link = openLink(child, post, options.collectAll, () => {
    unanswered = 0;
  });
  const timer = setInterval(() => {
    unanswered += 1;
    if (unanswered <= maxUnanswered) return link.send({ kind: 'beat', stalled: options.stalled() });
    clearInterval(timer);
    options.onHung();
    options.logger.error({ pid: child.pid }, `${options.name} hangs: it is ended and started again`);
    child.kill('SIGKILL');
  }, beatMs);
  child.once('exit', () => clearInterval(timer));
  return {
    answering: () => child.exitCode === null && child.signalCode === null && unanswered < 3,
    collect: () => link.ask(collectMs),
  };
}

/** @param collect figures of this process */
export function linkToParent(collect: () => Promise<CollectedFigures>) {
  let stalled: string | null = null;
  const link = openLink(
    process,
    (message) => {
      if (process.connected) process.send?.(message);
    },
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

/** @param hear is called for every message */
function openLink(
  channel: { on(event: 'message', hear: (message: Message) => void): unknown },
  send: (message: Message) => void,
  reply: () => Promise<readonly CollectedFigures[]>,
  hear: (message: Message) => void,
) {
  const asked = new Map<number, (figures: readonly CollectedFigures[]) => void>();
  let last = 0;
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
