/** What the types of the uWebSockets.js repack leave out and its binaries have. */
import type { us_listen_socket } from 'uWebSockets.js';

declare module 'uWebSockets.js' {
  export const LIBUS_LISTEN_EXCLUSIVE_PORT: number;

  interface TemplatedApp {
    listen(
      host: string,
      port: number,
      options: number,
      callback: (socket: us_listen_socket | false) => void,
    ): TemplatedApp;
  }
}
