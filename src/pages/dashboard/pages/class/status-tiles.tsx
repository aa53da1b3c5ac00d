import { formatPercent } from '../../base/format.js';
import { updateQuery } from '../../base/route.js';
import { Button } from '../../parts/button.jsx';
import type { Member } from './load-class.js';
import { type Status, statusRule, statusTexts } from './status.js';

interface StatusTilesProps {
  readonly members: readonly Member[];
  readonly shownStatus: Status | null;
}

export const StatusTiles = ({ members, shownStatus }: StatusTilesProps) => (
  <fieldset class="stats">
    <legend class="hidden">Filter learners by status</legend>
    {(Object.keys(statusTexts) as Status[]).map((status) => (
      <Tile
        key={status}
        {...{ status, isShown: shownStatus === status, total: members.length }}
        count={members.filter((member) => member.status === status).length}
      />
    ))}
  </fieldset>
);

interface TileProps {
  readonly status: Status;
  readonly count: number;
  readonly total: number;
  readonly isShown: boolean;
}

const tones: Readonly<Record<Status, string>> = { risk: 'alert', track: 'good', idle: '', few: '' };

const notes: Readonly<Record<Status, string>> = {
  risk: 'forecast misses the goal',
  idle: `no answer for ${statusRule.idleDays} days or more`,
  few: `fewer than ${statusRule.fewAnswers} answers`,
  track: 'forecast reaches the goal',
};

const Tile = ({ status, count, total, isShown }: TileProps) => (
  <div class={`stat tile ${isShown ? 'chosen' : ''}`}>
    <Button aria-pressed={isShown} onClick={() => updateQuery({ status: isShown ? null : status })}>
      <span class="tile-label">{statusTexts[status]}</span>
      <span class={`stat-value ${count > 0 ? tones[status] : ''}`}>
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
        <strong>{statusTexts.idle}</strong>: no answer for {statusRule.idleDays} days or more.
      </li>
      <li>
        <strong>{statusTexts.few}</strong>: fewer than {statusRule.fewAnswers} answers, which is not enough
        for a useful forecast.
      </li>
      <li>
        <strong>{statusTexts.track}</strong>: the forecast of the total score reaches the goal in time and
        still meets it on the goal date. Without a goal date, the limit is one year.
      </li>
      <li>
        <strong>{statusTexts.risk}</strong>: the forecast does not meet the goal.
      </li>
    </ul>
    <p>
      The first matching status in this list applies. Without a goal, the target is the learner's first
      estimated score, rounded up to a multiple of 50, plus 100. The forecast assumes the practice of the last
      14 days. Days are UTC days.
    </p>
  </details>
);
