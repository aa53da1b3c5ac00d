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
    <legend class="hidden">Show learners by their status</legend>
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
  risk: 'goal not in sight',
  idle: `no answer for ${statusRule.idleDays} days or more`,
  few: `below ${statusRule.fewAnswers} answers`,
  track: 'forecast reaches the goal',
};

const Tile = ({ status, count, total, isShown }: TileProps) => (
  <div class={`stat tile ${isShown ? 'chosen' : ''}`}>
    <Button aria-pressed={isShown} onClick={() => updateQuery({ status: isShown ? null : status })}>
      <span class="tile-label">{statusTexts[status]}</span>
      <span class={`stat-value ${count > 0 ? tones[status] : ''}`}>
        {count} <small>{total === 0 ? '' : formatPercent(count / total)}</small>
      </span>
      <span class="stat-note">{isShown ? 'only these are shown; click for all' : notes[status]}</span>
    </Button>
  </div>
);

export const StatusRuleNote = () => (
  <details>
    <summary>How a status is found</summary>
    <ul class="plain">
      <li>
        <strong>{statusTexts.idle}</strong>: the last answer is {statusRule.idleDays} days ago or more.
      </li>
      <li>
        <strong>{statusTexts.few}</strong>: fewer than {statusRule.fewAnswers} answers, which is too little to
        judge a forecast by.
      </li>
      <li>
        <strong>{statusTexts.track}</strong>: the forecast of the total score reaches the learner's goal in
        time and is still there at its date; where the goal has no date, within a year.
      </li>
      <li>
        <strong>{statusTexts.risk}</strong>: it does not.
      </li>
    </ul>
    <p>
      The first that holds counts. A goal is the learner's own; who has set none is held to a default target:
      the score at the beginning, rounded up to fifty, and 100 more. The forecast assumes practice as it was
      in the last weeks. The interval holds the score in 30 days with 80 % probability; the chance is that of
      standing at or above the goal at its date, without a date in a year. Days are UTC days.
    </p>
  </details>
);
