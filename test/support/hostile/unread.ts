/** Clients that send requests and never read an answer. */
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

export interface UnreadPlan {
  readonly sockets: number;
  /** All that is written at a time, one request or many. */
  readonly bytes: Buffer;
  readonly everyMs: number;
  readonly forMs: number;
}

export interface Unread {
  /** Resolves when the time is over, or when `enough` told that it is; the connections stay. */
  run(enough: () => boolean): Promise<void>;
  end(): void;
}

const lookMs = 10;

/** A socket to which nobody listens is not read by Node: the kernel's buffers fill, then the service's own. */
export function unreadClients(port: number, { sockets, bytes, everyMs, forMs }: UnreadPlan): Unread {
  const open = Array.from({ length: sockets }, () => silent(port));
  const writeAll = (): void => {
    for (const socket of open) if (isTakingMore(socket)) socket.write(bytes);
  };
  return {
    run: async (enough) => {
      const end = performance.now() + forMs;
      for (let next = performance.now(); performance.now() < end && !enough(); ) {
        if (performance.now() >= next) {
          writeAll();
          next += everyMs;
        }
        await sleep(lookMs);
      }
    },
    end: () => {
      for (const socket of open) socket.destroy();
    },
  };
}

/** What the service does not read yet would pile up here instead. */
const isTakingMore = (socket: Socket): boolean => socket.writable && socket.writableLength === 0;

function silent(port: number): Socket {
  const socket = connect({ host: '127.0.0.1', port, noDelay: true });
  // A service that cuts them off is what is wanted.
  socket.on('error', () => socket.destroy());
  return socket.pause();
}
