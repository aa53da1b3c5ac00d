// Quiz server that records answers with Skilltrace: POST /answers, GET /learners/NAME. Flushes the queue on SIGTERM.
//   SKILLTRACE_URL=http://127.0.0.1:3000 SKILLTRACE_KEY=KEY PORT=8080 node quiz-platform.mjs
import { createServer } from 'node:http';
import { json } from 'node:stream/consumers';
import { Skilltrace, SkilltraceError } from 'skilltrace/client';

const { SKILLTRACE_URL, SKILLTRACE_KEY, PORT = '8080' } = process.env;

const questions = new Map([
  ['q1', { skill: 'addition', text: '2 + 3', solution: '5' }],
  ['q2', { skill: 'multiplication', text: '6 * 7', solution: '42' }],
]);

const skilltrace = new Skilltrace({
  baseUrl: SKILLTRACE_URL,
  apiKey: SKILLTRACE_KEY,
  onUndelivered: (answer, error) =>
    console.error('Not delivered:', answer.event_id, error.code, error.message),
  onStopped: (error) => console.error('Skilltrace rejects all requests:', error.code, error.message),
});

/** Grades the answer and queues it. `track` does not wait for the service, so the quiz works while it is down. */
async function takeAnswer({ learner, question, text, seconds }) {
  const { skill, solution } = questions.get(question);
  const isCorrect = text === solution;
  await skilltrace.track({
    user_id: learner,
    skill_id: skill,
    item_id: question,
    is_correct: isCorrect,
    time_spent_seconds: seconds,
  });
  return { is_correct: isCorrect };
}

async function showLearner(learner) {
  const { skills } = await skilltrace.mastery(learner);
  return skills.map(({ skill_id, mastery, mastered }) => ({ skill: skill_id, mastery, mastered }));
}

async function respond(request) {
  if (request.method === 'POST' && request.url === '/answers') return takeAnswer(await json(request));
  const [, learner] = /^\/learners\/(.+)$/.exec(request.url) ?? [];
  return learner === undefined ? null : showLearner(decodeURIComponent(learner));
}

const server = createServer(async (request, response) => {
  try {
    const body = await respond(request);
    response.writeHead(body === null ? 404 : 200).end(JSON.stringify(body));
  } catch (error) {
    if (!(error instanceof SkilltraceError)) throw error;
    response.writeHead(error.status === 404 ? 404 : 503).end(JSON.stringify({ error: error.message }));
  }
});
server.listen(Number(PORT), '127.0.0.1', () => console.log(`listening on ${server.address().port}`));

process.once('SIGTERM', () => {
  server.close();
  server.closeIdleConnections();
  skilltrace.close({ timeoutMs: 8000 });
});
