/** What an API process of several and the process that started it say to each other, over Node's own channel. */
import type { ChildProcess } from 'node:child_process';
import { inTime } from '../lifecycle.js';
import type { Logger } from '../telemetry.js';
import type { CollectedFigures } from './metrics.js';

/** To the API process. `beat` wants an answer; `collect` wants its figures; `figures` are those of all that it asked for. */
type ToChild =
  | { readonly kind: 'beat'; readonly stalled: string | null }
  | { readonly kind: 'collect'; readonly id: number }
  | { readonly kind: 'figures'; readonly id: number; readonly all: readonly CollectedFigures[] };

/** From the API process. */
type FromChild =
  | { readonly kind: 'beat' }
  | { readonly kind: 'collected'; readonly id: number; readonly figures: CollectedFigures }
  | { readonly kind: 'ask'; readonly id: number };

const beatMs = 1000;
/** So many beats without an answer, and the process hangs. Beats are counted: who stood still himself sent none. */
const patience = 15;
/** How long a process may take to tell its figures, and the one that asked waits for all. */
const collectMs = 1500;
const askMs = 3000;

export interface ChildWatch {
  readonly answering: () => boolean;
  /** Null where it does not tell in time. */
  collect(): Promise<CollectedFigures | null>;
}

export interface ChildWatchOptions {
  readonly name: string;
  readonly logger: Logger;
  /** Why the consumers of this process do not move, or null: the child's livez tells it. */
  readonly stalled: () => string | null;
  /** The figures of all processes, for a child that is asked. */
  readonly collectAll: () => Promise<readonly CollectedFigures[]>;
  readonly onHung: () => void;
}

/** Ends a child that hangs: whoever watches over it starts another. */
export function watchChild(child: ChildProcess, options: ChildWatchOptions): ChildWatch {
  const collects = createReplies<CollectedFigures>();
  let unanswered = 0;
  const send = (message: ToChild): void => {
    // Without a channel there is no child any more, which its end tells.
    if (child.connected) child.send(message, () => undefined);
  };
  const timer = setInterval(() => {
    unanswered += 1;
    if (unanswered <= patience) return send({ kind: 'beat', stalled: options.stalled() });
    clearInterval(timer);
    options.onHung();
    options.logger.error({ pid: child.pid }, `${options.name} hangs: it is ended and started again`);
    child.kill('SIGKILL');
  }, beatMs);
  child.once('exit', () => clearInterval(timer));
  child.on('message', (message: FromChild) => {
    unanswered = 0;
    if (message.kind === 'collected') collects.settle(message.id, message.figures);
    if (message.kind === 'ask')
      void options.collectAll().then((all) => send({ kind: 'figures', id: message.id, all }));
  });
  return {
    answering: () => child.exitCode === null && child.signalCode === null && unanswered < 3,
    collect: () => collects.ask((id) => send({ kind: 'collect', id }), collectMs),
  };
}

export interface ParentLink {
  /** What the process that started this one says of its consumers. */
  readonly stalled: () => string | null;
  /** Figures of all processes; null where they are not told in time. */
  readonly collectAll: () => Promise<readonly CollectedFigures[] | null>;
}

/** @param collect figures of this process */
export function linkToParent(collect: () => Promise<CollectedFigures>): ParentLink {
  const asks = createReplies<readonly CollectedFigures[]>();
  let stalled: string | null = null;
  const send = (message: FromChild): void => {
    if (process.connected) process.send?.(message);
  };
  process.on('message', (message: ToChild) => {
    if (message.kind === 'figures') asks.settle(message.id, message.all);
    if (message.kind === 'collect')
      void collect().then((figures) => send({ kind: 'collected', id: message.id, figures }));
    if (message.kind !== 'beat') return;
    stalled = message.stalled;
    send({ kind: 'beat' });
  });
  return {
    stalled: () => stalled,
    collectAll: () => asks.ask((id) => send({ kind: 'ask', id }), askMs),
  };
}

/** Matches replies with what asked for them. */
function createReplies<Reply>() {
  const open = new Map<number, (reply: Reply) => void>();
  let last = 0;
  return {
    ask: async (send: (id: number) => void, limitMs: number): Promise<Reply | null> => {
      const id = ++last;
      const reply = new Promise<Reply>((resolve) => open.set(id, resolve));
      send(id);
      return inTime(reply, limitMs)
        .catch(() => null)
        .finally(() => open.delete(id));
    },
    settle: (id: number, reply: Reply): void => open.get(id)?.(reply),
  };
}
