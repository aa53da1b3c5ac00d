/** How much is behind a figure, in words, so that nobody takes a guess for knowledge. */
import { percent, plural } from '../../base/format.js';
import { Badge } from '../../parts/stat.jsx';

/** From here on the service itself gives points and a baseline; below it advises without figures. */
const enoughAnswers = 20;
/** The least on a skill for "mastered", for advice and for a day's mean of mastery. */
export const enoughOnSkill = 5;

/** @param reliability share of what could be known of a section that these answers tell, 0 to 1 */
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

/** Said first, where a learner has answered little. */
export const ThinNote = ({ answers }: { readonly answers: number }) =>
  answers >= enoughAnswers ? null : (
    <p class="note alert">
      <strong>
        Thin evidence: {answers} {answers === 1 ? 'answer' : 'answers'}.
      </strong>{' '}
      Scores and forecasts below are mostly what is usual for everybody, not for this learner. Look at the
      intervals, and wait for {enoughAnswers} answers before you decide anything by them.
    </p>
  );
