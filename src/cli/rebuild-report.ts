/** What a rebuild prints. */

import { grouped } from '../lab/report/numbers.js';
import type { RebuildProgress, RebuildResult } from '../services/rebuild/rebuild.js';
import type { VerifyResult } from '../services/rebuild/verify.js';

/** A second, of what this run replayed. */
const rates = ({ learners, answers, resumedAfter, replaySeconds }: RebuildResult) => {
  const share = answers === 0 ? 0 : (answers - resumedAfter) / answers;
  const seconds = Math.max(replaySeconds, 0.001);
  return {
    learners: Math.round((share * learners) / seconds),
    answers: Math.round((share * answers) / seconds),
  };
};

export function rebuildText(result: RebuildResult | null): string {
  if (result === null) return 'nothing to restore';
  const { learners, answers, resumedAfter, partitions, seconds } = result;
  const perSecond = rates(result);
  const lines = [
    `${grouped(learners)} learners with ${grouped(answers)} answers restored in ${seconds.toFixed(1)} s`,
    `  ${grouped(perSecond.learners)} learners and ${grouped(perSecond.answers)} answers a second in the replay`,
    `  ${partitions} partitions are in use again`,
  ];
  if (resumedAfter > 0) lines.push(`  ${grouped(resumedAfter)} of the answers by an earlier run`);
  return [...lines, ...notesOf(result).map((note) => `  Note: ${note}`)].join('\n');
}

function notesOf(result: RebuildResult): string[] {
  const { brokenCount, broken, unreadableKeys } = result;
  const notes: string[] = [];
  if (brokenCount > 0)
    notes.push(
      `rows of ${grouped(brokenCount)} learners have gaps or doubles (${broken.join(', ')}): they are as their rows say`,
    );
  if (unreadableKeys > 0)
    notes.push(
      `${grouped(unreadableKeys)} API keys were recorded under another password of ClickHouse: create them again`,
    );
  return notes;
}

export const rebuildJson = (result: RebuildResult | null): string =>
  JSON.stringify(
    result === null
      ? { restored: false }
      : {
          restored: true,
          partitions: result.partitions,
          learners: result.learners,
          answers: result.answers,
          resumed_after: result.resumedAfter,
          seconds: Number(result.seconds.toFixed(3)),
          learners_per_second: rates(result).learners,
          answers_per_second: rates(result).answers,
          broken_learners: result.brokenCount,
          notes: notesOf(result),
        },
  );

export function progressText({ step, answers, total }: RebuildProgress): string {
  if (total === 0) return step;
  const share = Math.floor((100 * answers) / total);
  return `${step}, ${share} %, ${grouped(answers)} of ${grouped(total)} answers`;
}

/** Differences that people read; the rest is in the JSON. */
const shownDifferences = 20;

export function verifyText({ learners, answers, waiting, differing, ...result }: VerifyResult): string {
  const { differingCount, undecided, seconds } = result;
  const lines = [
    `${grouped(learners)} learners with ${grouped(answers)} stored answers compared in ${seconds.toFixed(1)} s`,
    differingCount === 0 ? '  no differences' : `  ${grouped(differingCount)} learners differ`,
    ...differing.slice(0, shownDifferences).map(({ learner, what }) => `    ${learner} ${what}`),
  ];
  if (waiting > 0) lines.push(`  ${grouped(waiting)} of them had answers that still wait in Redis`);
  if (undecided > 0)
    lines.push(
      `  ${grouped(undecided)} could not be compared, for Redis counts answers that no row is found of: they kept answering (compare again), or ClickHouse lacks rows (npm run audit)`,
    );
  return lines.join('\n');
}

export const verifyJson = ({ differing, differingCount, ...result }: VerifyResult): string =>
  JSON.stringify({
    learners: result.learners,
    answers: result.answers,
    waiting: result.waiting,
    differing: differingCount,
    differences: differing,
    undecided: result.undecided,
    seconds: Number(result.seconds.toFixed(3)),
  });
