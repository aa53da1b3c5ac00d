/** With WRITE_DOCS=1, the test writes the results into the pages. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { queryPages, readQuestions, tidied, writeResults } from '../support/analytics/page.js';
import { runCommand } from '../support/commands/command.js';
import { startServers } from '../support/servers/servers.js';

test('Pages in docs/analytics have the results of their queries on the demo', {
  timeout: 600_000,
}, async (t) => {
  const { env, analystUrl } = await startServers(t);
  const { code, err } = await runCommand('demo', env, '--until', '2026-06-30');
  assert.equal(code, 0, err);
  const questions = queryPages.flatMap(readQuestions);
  const results = new Map<string, string>();
  for (const { title, sql } of questions) results.set(title, await markdownOf(analystUrl, sql));
  if (process.env.WRITE_DOCS === '1') for (const page of queryPages) writeResults(page, results);
  else
    for (const { title, result } of questions)
      assert.equal(results.get(title), result, `${title}: WRITE_DOCS=1 npm run test:full -- full/analytics`);
});

async function markdownOf(analystUrl: string, sql: string): Promise<string> {
  const { origin, pathname, username, password } = new URL(analystUrl);
  const headers = { authorization: `Basic ${btoa(`${username}:${password}`)}` };
  const body = `${sql}\nFORMAT Markdown`;
  const response = await fetch(`${origin}${pathname}`, { method: 'POST', body, headers });
  const text = await response.text();
  assert.equal(response.status, 200, `${sql}\n${text}`);
  return tidied(text);
}
