/**
 * Closed-loop load over keep-alive connections, in a process of its own: each connection sends its next answer when
 * the one before was answered. Prints `{"answers","errors","seconds"}`.
 *
 * Arguments: port, API key, connections, seconds.
 */
import { randomInt } from 'node:crypto';
import { connect } from 'node:net';

const [port, key, connections, seconds] = process.argv.slice(2);
const learners = 10_000;
const skills = 50;
let answers = 0;
let errors = 0;
let over = false;

function request(): string {
  const body = JSON.stringify({
    user_id: `learner-${randomInt(learners)}`,
    skill_id: `skill-${randomInt(skills)}`,
    is_correct: randomInt(10) < 6,
    time_spent_seconds: randomInt(120),
    question_difficulty: 0.5,
  });
  return (
    `POST /api/v1/track-answer HTTP/1.1\r\nHost: bench\r\nX-API-Key: ${key}\r\n` +
    `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`
  );
}

/** Made before the clock starts, so that making them is not measured. */
const requests = Array.from({ length: 20_000 }, request);

function open(offset: number): void {
  let next = offset;
  let received = '';
  const socket = connect({ host: '127.0.0.1', port: Number(port), noDelay: true });
  const send = (): void => {
    next = (next + 1) % requests.length;
    socket.write(requests[next] as string);
  };
  socket.once('connect', send);
  socket.on('error', () => {
    errors += over ? 0 : 1;
  });
  socket.on('data', (chunk) => {
    received += chunk.toString('latin1');
    const length = responseLength(received);
    if (length === null || received.length < length) return;
    if (received.startsWith('HTTP/1.1 200')) answers += 1;
    else errors += 1;
    received = received.slice(length);
    if (over) socket.destroy();
    else send();
  });
}

function responseLength(text: string): number | null {
  const head = text.indexOf('\r\n\r\n');
  const length = /content-length: (\d+)/i.exec(text)?.[1];
  return head < 0 || length === undefined ? null : head + 4 + Number(length);
}

for (let i = 0; i < Number(connections); i++) open(randomInt(requests.length));
setTimeout(() => {
  over = true;
  process.stdout.write(`${JSON.stringify({ answers, errors, seconds: Number(seconds) })}\n`);
  process.exit(0);
}, Number(seconds) * 1000);
