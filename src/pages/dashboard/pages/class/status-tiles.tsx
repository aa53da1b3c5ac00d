import { goalConstants } from '../../../../domain/base/score-constants.js';
import { type Status, statusRule, statusTexts } from '../../../../domain/classes/learner-status.js';
import { formatPercent } from '../../base/format.js';
import { updateQuery } from '../../base/route.js';
import { Button } from '../../parts/button.jsx';
import type { Member } from './load-class.js';
import { statusTones } from './status-badge.jsx';

interface StatusTilesProps {
  readonly members: readonly Member[];
  readonly shownStatus: Status | null;
}

export const StatusTiles = ({ members, shownStatus }: StatusTilesProps) => (
  <fieldset class="stats tiles">
    <legend class="hidden">Filter learners by status</legend>
    {countByStatus(members)
      .filter(([status, count]) => count > 0 || status === shownStatus)
      .map(([status, count]) => (
        <Tile key={status} {...{ status, count, isShown: shownStatus === status, total: members.length }} />
      ))}
  </fieldset>
);

const countByStatus = (members: readonly Member[]) =>
  (Object.keys(statusTexts) as Status[]).map(
    (status) => [status, members.filter((member) => member.status === status).length] as const,
  );

interface TileProps {
  readonly status: Status;
  readonly count: number;
  readonly total: number;
  readonly isShown: boolean;
}

const { onTrack, unlikely } = goalConstants;

const notes: Readonly<Record<Status, string>> = {
  unlikely: `chance to reach the goal below ${formatPercent(unlikely.below)}`,
  at_risk: `chance to reach the goal below ${formatPercent(onTrack.from)}`,
  expired: 'set a new goal',
  idle: `no answer for ${statusRule.idleDays} days or more`,
  few: `fewer than ${statusRule.fewAnswers} answers`,
  none: 'set a goal on the page of a learner',
  on_track: `chance to reach the goal ${formatPercent(onTrack.from)} or more`,
  reached: 'score meets the goal',
};

const Tile = ({ status, count, total, isShown }: TileProps) => (
  <div class={`stat tile ${isShown ? 'chosen' : ''}`}>
    <Button aria-pressed={isShown} onClick={() => updateQuery({ status: isShown ? null : status })}>
      <span class="tile-label">{statusTexts[status]}</span>
      <span class={`stat-value ${statusTones[status]}`}>
        {count} <small>{total === 0 ? '' : formatPercent(count / total)}</small>
      </span>
      <span class="stat-note">{isShown ? 'filtered; click to show all' : notes[status]}</span>
    </Button>
  </div>
);

export const StatusRuleNote = () => (
  <details>
    <summary>How we decide a learner's status</summary>
    <ul class="plain">
      <li>
        <strong>{statusTexts.expired}</strong>: the goal date has passed, and the score is below the goal. Set
        a new goal on the page of the learner.
      </li>
      <li>
        <strong>{statusTexts.reached}</strong>: the score meets the goal, with at least{' '}
        {statusRule.fewAnswers} answers. The status ends when the score is more than{' '}
        {goalConstants.alertMargin} points below the goal.
      </li>
      <li>
        <strong>{statusTexts.idle}</strong>: no answer for {statusRule.idleDays} days or more.
      </li>
      <li>
        <strong>{statusTexts.few}</strong>: fewer than {statusRule.fewAnswers} answers, which is not enough
        for a useful forecast.
      </li>
      <li>
        <strong>{statusTexts.none}</strong>: the learner has no goal. Set one on the page of the learner.
      </li>
      <li>
        <strong>{statusTexts.on_track}</strong>: the chance to reach the goal is {formatPercent(onTrack.from)}{' '}
        or more. The status ends below {formatPercent(onTrack.kept)}, and returns at{' '}
        {formatPercent(onTrack.again)}.
      </li>
      <li>
        <strong>{statusTexts.unlikely}</strong>: the chance is below {formatPercent(unlikely.below)}. The
        status ends at {formatPercent(unlikely.kept)}.
      </li>
      <li>
        <strong>{statusTexts.at_risk}</strong>: the chance is between these limits.
      </li>
    </ul>
    <p>
      The first matching status in this list applies. The chance is the probability of the target score or
      more on the goal date, or in one year without a date. It assumes the practice of the last 14 days.
    </p>
  </details>
);
