/** Files in the formats of public data sets, see log-formats.ts. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { logFormats } from '../../src/services/answer-log/formats.js';
import type { FileAnswer } from '../../src/services/answer-log/rows.js';
import { type ExpectedAnswer, formatExamples } from '../support/builders/log-formats.js';
import { profileFile, writeFiles } from '../support/commands/answer-logs.js';

const toExpected = ({ userId, skillIds, isCorrect, itemId, at, seconds }: FileAnswer): ExpectedAnswer => [
  ...([userId, skillIds, isCorrect ? 1 : 0, itemId] as const),
  at === null ? null : new Date(at).toISOString(),
  seconds,
];

for (const { title, format, files, open, answers, leftOut = {}, warnings = [] } of formatExamples) {
  test(`Detects and reads ${title}`, async (t) => {
    const folder = await writeFiles(t, files);
    const { log, first, profile, warnings: found } = await profileFile(join(folder, open));
    assert.equal(log.format.name, format);
    assert.deepEqual(first.map(toExpected), answers);
    assert.deepEqual(profile.leftOut, leftOut);
    const others = found.filter(
      (text) => !/fewer than 20 answers|of one learner|All answers are|are invalid|first time is/.test(text),
    );
    assert.equal(others.length, warnings.length, others.join('\n'));
    for (const [i, pattern] of warnings.entries()) assert.match(others[i] ?? '', pattern);
  });
}

test('Every format has an example here or in table-export', () => {
  const shown = new Set(['skilltrace-export', ...formatExamples.map(({ format }) => format)]);
  assert.deepEqual([...shown].sort(), logFormats.map(({ name }) => name).sort());
});
