/** A bare uWebSockets.js server that only parses JSON: the ceiling. */
import { App, type HttpResponse } from 'uWebSockets.js';
import type { PeerSettings } from '../targets/peers.js';

const { port }: PeerSettings = JSON.parse(process.argv[2] as string);

function respond(res: HttpResponse, isCorrect: boolean): void {
  res.cork(() => {
    res.writeHeader('Content-Type', 'application/json').end(`{"success":${isCorrect}}`);
  });
}

const app = App();
app.get('/*', (res) => respond(res, true));
app.post('/*', (res) => {
  const chunks: Buffer[] = [];
  res.onAborted(() => undefined);
  res.onData((chunk, isLast) => {
    chunks.push(Buffer.from(new Uint8Array(chunk)));
    if (!isLast) return;
    const event: { is_correct?: boolean } = JSON.parse(Buffer.concat(chunks).toString());
    respond(res, event.is_correct === true);
  });
});
app.listen('127.0.0.1', port, (socket) => {
  if (!socket) throw new Error(`Port ${port} is in use`);
  process.stdout.write('ready\n');
});
