import type { GoalSetting, Prediction } from '../../../../client/types.js';
import { formatDay as formatLocalDay } from '../../../../domain/base/calendar.js';
import {
  computeStatus,
  explainStatus,
  hasOpenGoal,
  type StatusInput,
} from '../../../../domain/classes/learner-status.js';
import { isDatePast } from '../../../../domain/score/goal.js';
import { useAction } from '../../base/action.js';
import { formatChance, formatDay, formatDecimal, pluralize } from '../../base/format.js';
import { computeToday } from '../../base/school-days.js';
import { useViewer } from '../../base/viewer.js';
import { Button } from '../../parts/button.jsx';
import { ErrorNote } from '../../parts/loaded.jsx';
import { Facts } from '../../parts/stat.jsx';
import { StatusBadge } from '../class/status-badge.jsx';

type GoalTracking = Prediction['goal_tracking'];

interface GoalFormProps {
  readonly userId: string;
  readonly goal: GoalTracking;
  readonly onChange: () => void;
}

interface GoalPanelProps extends GoalFormProps {
  readonly statusInput: StatusInput;
}

export function GoalPanel({ userId, goal, statusInput, onChange }: GoalPanelProps) {
  const { hasScope } = useViewer();
  return (
    <section class="inner">
      <h3>
        {goal.is_set ? `Goal: ${goal.target_score}` : 'No goal set'}
        {goal.target_date !== null && ` by ${formatDay(goal.target_date)}`}
      </h3>
      {goal.is_set ? (
        <GoalOutlook goal={goal} statusInput={statusInput} />
      ) : (
        <p>Set a target score to see the chance to reach it.</p>
      )}
      {hasScope('write') ? (
        <GoalForm
          key={`${goal.target_score} ${goal.target_date}`}
          userId={userId}
          goal={goal}
          onChange={onChange}
        />
      ) : (
        <p class="soft">Setting a goal requires a key with the scope write.</p>
      )}
    </section>
  );
}

type GoalOutlookProps = Pick<GoalPanelProps, 'goal' | 'statusInput'>;

/** Status, chance and reason in words. */
export function GoalChance({ goal, statusInput }: GoalOutlookProps) {
  const status = computeStatus(statusInput);
  const reason = explainStatus(statusInput, true);
  return (
    <p>
      <StatusBadge status={status} />{' '}
      {hasOpenGoal(goal) && (
        <>
          <strong>{formatChance(goal.goal_probability)}</strong> chance of {goal.target_score} points or more{' '}
          {formatDeadline(goal.target_date)}.
        </>
      )}{' '}
      {reason !== null && `${reason.charAt(0).toUpperCase()}${reason.slice(1)}.`}
    </p>
  );
}

function GoalOutlook({ goal, statusInput }: GoalOutlookProps) {
  return (
    <>
      <GoalChance goal={goal} statusInput={statusInput} />
      <Facts
        facts={[
          ['Goal reached', formatReached(goal, statusInput)],
          ['Progress', `${formatDecimal(0)(goal.progress_percent)} % of the way from the first score`],
        ]}
      />
      <p class="soft">
        The status depends on this chance. A small change of the chance does not change the status. The Class
        page explains every status.
      </p>
    </>
  );
}

function formatReached({ target_score, days_to_goal }: GoalTracking, { currentTotal }: StatusInput): string {
  if (currentTotal >= target_score) return 'now';
  return days_to_goal === null ? 'not within a year' : `in ${pluralize(days_to_goal, 'day')}`;
}

function formatDeadline(date: string | null): string {
  if (date === null) return 'in one year';
  return isDatePast(date, computeToday()) ? 'now (goal date passed)' : `on ${formatDay(date)}`;
}

const today = (): string => formatLocalDay(computeToday());

function getFormTitle(goal: GoalTracking): string {
  if (!goal.is_set) return 'Set a goal';
  return hasOpenGoal(goal) ? 'Change or remove the goal' : 'Set a new goal';
}

function GoalForm({ userId, goal, onChange }: GoalFormProps) {
  const { api } = useViewer();
  const save = useAction((setting: GoalSetting) => api.setGoal(userId, setting).then(onChange));
  const remove = useAction(() => api.deleteGoal(userId).then(onChange));
  const isNew = !hasOpenGoal(goal);
  const isBusy = save.isBusy || remove.isBusy;
  const error = save.error ?? remove.error;
  const submit = (event: Event): void => {
    event.preventDefault();
    const fields = new FormData(event.currentTarget as HTMLFormElement);
    const date = String(fields.get('date'));
    void save.run({ target_score: Number(fields.get('score')), target_date: date === '' ? null : date });
  };
  return (
    <details open={isNew}>
      <summary>{getFormTitle(goal)}</summary>
      <form class="row goal-form" onSubmit={submit}>
        <label class="field">
          Target score
          <input
            name="score"
            type="number"
            min={400}
            max={1600}
            step={10}
            required
            defaultValue={`${goal.target_score}`}
          />
        </label>
        <label class="field">
          Goal date (optional)
          <input name="date" type="date" min={today()} defaultValue={isNew ? '' : (goal.target_date ?? '')} />
        </label>
        <button type="submit" class="primary" disabled={isBusy}>
          Save
        </button>
        {goal.is_set && (
          <Button class="danger" disabled={isBusy} onClick={() => void remove.run()}>
            Remove
          </Button>
        )}
      </form>
      {error !== null && <ErrorNote error={error} />}
    </details>
  );
}
