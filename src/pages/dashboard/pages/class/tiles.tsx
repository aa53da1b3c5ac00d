import { percent } from '../../base/format.js';
import { look } from '../../base/route.js';
import { Button } from '../../parts/button.jsx';
import type { Member } from './read.js';
import { rule, type Status, statuses } from './status.js';

interface TilesProps {
  readonly members: readonly Member[];
  readonly shown: Status | null;
}

export const Tiles = ({ members, shown }: TilesProps) => (
  <fieldset class="stats">
    <legend class="hidden">Show learners by their status</legend>
    {(Object.keys(statuses) as Status[]).map((status) => (
      <Tile
        key={status}
        {...{ status, isShown: shown === status, of: members.length }}
        count={members.filter((member) => member.status === status).length}
      />
    ))}
  </fieldset>
);

interface TileProps {
  readonly status: Status;
  readonly count: number;
  readonly of: number;
  readonly isShown: boolean;
}

const looks: Readonly<Record<Status, string>> = { risk: 'alert', track: 'good', idle: '', few: '' };

const notes: Readonly<Record<Status, string>> = {
  risk: 'goal not in sight',
  idle: `no answer for ${rule.idleDays} days or more`,
  few: `below ${rule.fewAnswers} answers`,
  track: 'forecast reaches the goal',
};

const Tile = ({ status, count, of, isShown }: TileProps) => (
  <div class={`stat tile ${isShown ? 'chosen' : ''}`}>
    <Button aria-pressed={isShown} onClick={() => look({ status: isShown ? null : status })}>
      <span class="tile-label">{statuses[status]}</span>
      <span class={`stat-value ${count > 0 ? looks[status] : ''}`}>
        {count} <small>{of === 0 ? '' : percent(count / of)}</small>
      </span>
      <span class="stat-note">{isShown ? 'only these are shown; click for all' : notes[status]}</span>
    </Button>
  </div>
);

export const HowJudged = () => (
  <details>
    <summary>How a status is found</summary>
    <ul class="plain">
      <li>
        <strong>{statuses.idle}</strong>: the last answer is {rule.idleDays} days ago or more.
      </li>
      <li>
        <strong>{statuses.few}</strong>: fewer than {rule.fewAnswers} answers, which is too little to judge a
        forecast by.
      </li>
      <li>
        <strong>{statuses.track}</strong>: the forecast of the total score reaches the learner's goal in time
        and is still there at its date; where the goal has no date, within a year.
      </li>
      <li>
        <strong>{statuses.risk}</strong>: it does not.
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
