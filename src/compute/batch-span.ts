import type { TrackReply, TrackTask } from '../contracts/tasks.js';
import { ending } from '../spans.js';
import { type SentPart, taskOf } from './track-task.js';

/** Runs a task in a span below its first sampled request, so that one trace shows the whole way, and linked to all of them. */
export async function inSpan(requests: readonly SentPart[], run: (task: TrackTask) => Promise<TrackReply>) {
  const spans = requests.map(({ sent }) => sent.span).filter((span) => !!span);
  const batch = spans[0]?.child('batch', { 'skilltrace.requests': requests.length }, spans);
  const reply = await ending(batch, run(taskOf(requests, batch !== undefined)));
  const worker = batch?.child('worker', {}, [], reply.times?.start);
  for (const { name, start, end } of reply.times?.steps ?? [])
    worker?.child(name, { 'db.system.name': 'redis' }, [], start).end({}, end);
  worker?.end({}, reply.times?.end);
  return reply;
}
