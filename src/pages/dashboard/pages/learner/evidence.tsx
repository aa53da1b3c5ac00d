import { percent, plural } from '../../base/format.js';
import { Badge } from '../../parts/stat.jsx';

/** Minimum for a baseline and for points of advice. */
const enoughAnswers = 20;
/** Minimum for "mastered", advice and the daily mean of mastery. */
export const enoughOnSkill = 5;

/** @param reliability share of the estimate that comes from the learner's answers */
export function strengthOf(reliability: number): { readonly word: string; readonly isThin: boolean } {
  if (reliability < 0.5) return { word: 'thin evidence', isThin: true };
  return reliability < 0.75
    ? { word: 'some evidence', isThin: false }
    : { word: 'good evidence', isThin: false };
}

export function Evidence({ reliability, answers }: { reliability: number; answers: number }) {
  const { word, isThin } = strengthOf(reliability);
  return (
    <>
      {isThin ? <Badge look="alert">{word}</Badge> : `${word}:`} {plural(answers, 'answer')}, reliability{' '}
      {percent(reliability)}
    </>
  );
}

export const ThinNote = ({ answers }: { readonly answers: number }) =>
  answers >= enoughAnswers ? null : (
    <p class="note alert">
      <strong>Thin evidence: {plural(answers, 'answer')}.</strong> Scores and forecasts below are mostly what
      is usual for everybody, not for this learner. Look at the intervals, and wait for {enoughAnswers}{' '}
      answers before you decide anything by them.
    </p>
  );
