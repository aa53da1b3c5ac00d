import { formatPercent, pluralize } from '../../base/format.js';
import { Badge } from '../../parts/stat.jsx';

/** Minimum for a baseline and for points of advice. */
const minAnswers = 20;
/** Minimum for "mastered", advice and the daily mean of mastery. */
export const minSkillAnswers = 5;

/** @param reliability share of the estimate that comes from the learner's answers */
export function rateEvidence(reliability: number): { readonly word: string; readonly isThin: boolean } {
  if (reliability < 0.5) return { word: 'low reliability', isThin: true };
  return reliability < 0.75
    ? { word: 'medium reliability', isThin: false }
    : { word: 'high reliability', isThin: false };
}

export function Evidence({ reliability, answers }: { reliability: number; answers: number }) {
  const { word, isThin } = rateEvidence(reliability);
  return (
    <>
      {isThin ? <Badge tone="alert">{word}</Badge> : word} ({formatPercent(reliability)}),{' '}
      {pluralize(answers, 'answer')}
    </>
  );
}

export const ThinEvidenceNote = ({ answers }: { readonly answers: number }) =>
  answers >= minAnswers ? null : (
    <p class="note alert">
      <strong>Not enough data: {pluralize(answers, 'answer')}.</strong> Scores and forecasts mostly reflect
      the average learner. Check the intervals, and wait for {minAnswers} answers before you make decisions.
    </p>
  );
