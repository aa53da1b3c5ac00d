/** The ceiling: a bare uWebSockets.js server that parses the JSON of each request and answers. */
import { App } from 'uWebSockets.js';

const app = App();
app.post('/*', (res) => {
  const chunks: Buffer[] = [];
  res.onAborted(() => undefined);
  res.onData((chunk, isLast) => {
    chunks.push(Buffer.from(new Uint8Array(chunk)));
    if (!isLast) return;
    const event: { is_correct: boolean } = JSON.parse(Buffer.concat(chunks).toString());
    res.cork(() => {
      res.writeHeader('Content-Type', 'application/json').end(`{"success":${event.is_correct}}`);
    });
  });
});
app.listen('127.0.0.1', Number(process.argv[2]), (socket) => {
  if (!socket) throw new Error(`port ${process.argv[2]} is taken`);
  process.stdout.write('ready\n');
});
