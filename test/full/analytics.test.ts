/** With WRITE_DOCS=1, the test writes the results into the page. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { pageFile, questionsOf, readPage, tidied, withResults } from '../support/analytics/page.js';
import { runCommand } from '../support/commands/command.js';
import { startServers } from '../support/servers/servers.js';

test('docs/analytics.md has the results of its queries on the demo data', { timeout: 600_000 }, async (t) => {
  const { env, analystUrl } = await startServers(t);
  const { code, err } = await runCommand('demo', env, '--until', '2026-06-30');
  assert.equal(code, 0, err);
  const page = readPage();
  const results = new Map<string, string>();
  for (const { title, sql } of questionsOf(page)) results.set(title, await markdownOf(analystUrl, sql));
  if (process.env.WRITE_DOCS === '1') writeFileSync(pageFile, withResults(page, results));
  else
    for (const { title, result } of questionsOf(page))
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
