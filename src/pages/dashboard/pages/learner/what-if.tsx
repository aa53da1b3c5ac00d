import * as Plot from '@observablehq/plot';
import { useMemo, useState } from 'preact/hooks';
import type { Plan, Prediction, WhatIf } from '../../../../client/types.js';
import { hasOpenGoal } from '../../../../domain/classes/learner-status.js';
import { computeDomain } from '../../../../lab/report/marks.js';
import { useDebounced } from '../../base/debounced.js';
import {
  formatChance,
  formatDay,
  formatDecimal,
  formatPercent,
  formatSigned,
  missingText,
  pluralize,
} from '../../base/format.js';
import { useLoad } from '../../base/load.js';
import { useViewer } from '../../base/viewer.js';
import { Chart } from '../../parts/chart.jsx';
import { Loaded } from '../../parts/loaded.jsx';
import { Panel } from '../../parts/stat.jsx';
import { type Column, createColumnBuilder } from '../../parts/table.jsx';
import type { LearnerProps, NamedSkills } from './learner-props.js';

interface WhatIfProps extends LearnerProps {
  readonly prediction: Prediction;
  readonly level: number;
}

const maxAnswers = 100;
const minInitialAnswers = 5;

export function WhatIfPanel({ userId, prediction, skills, getSkillName, level }: WhatIfProps) {
  const { api } = useViewer();
  const { math, rw } = prediction.assumed_practice;
  const usual = math.answers_per_day + rw.answers_per_day;
  const [answers, setAnswers] = useState(() =>
    Math.min(maxAnswers, Math.max(minInitialAnswers, Math.round(usual))),
  );
  const [days, setDays] = useState(90);
  const [skillIds, setSkillIds] = useState<readonly string[]>([]);
  const plan = useMemo(
    (): Plan => ({
      answers_per_day: answers,
      days,
      confidence_level: level,
      skills: skillIds.length === 0 ? null : skillIds,
    }),
    [answers, days, skillIds, level],
  );
  const debouncedPlan = useDebounced(plan, 200);
  const { target_score, target_date } = prediction.goal_tracking;
  const forecastLoad = useLoad(
    (signal) => api.whatIf(userId, debouncedPlan, { signal }),
    [api, userId, debouncedPlan, target_score, target_date],
    true,
  );
  return (
    <Panel
      title="What-if forecast"
      about="Forecast for another practice plan, every day from today. The plan is not stored."
    >
      <Slider
        label="Planned answers per day"
        value={answers}
        min={0}
        max={maxAnswers}
        onInput={setAnswers}
        format={String}
      />
      <Slider
        label="Horizon"
        value={days}
        min={1}
        max={365}
        onInput={setDays}
        format={(n) => pluralize(n, 'day')}
      />
      <SkillChecklist
        skills={skills}
        getSkillName={getSkillName}
        skillIds={skillIds}
        onChange={setSkillIds}
      />
      <Loaded load={forecastLoad} subject="the plan">
        {(forecast) => <PlanOutcome forecast={forecast} usual={usual} />}
      </Loaded>
    </Panel>
  );
}

interface SliderProps {
  readonly label: string;
  readonly value: number;
  readonly min: number;
  readonly max: number;
  readonly onInput: (value: number) => void;
  readonly format: (value: number) => string;
}

const Slider = ({ label, value, min, max, onInput, format }: SliderProps) => (
  <label class="slider">
    <span>{label}</span>
    <input
      type="range"
      {...{ min, max, value }}
      aria-valuetext={format(value)}
      onInput={(event) => onInput(event.currentTarget.valueAsNumber)}
    />
    <output>{format(value)}</output>
  </label>
);

interface SkillChecklistProps extends NamedSkills {
  readonly skillIds: readonly string[];
  readonly onChange: (chosen: readonly string[]) => void;
}

function SkillChecklist({ skills, getSkillName, skillIds, onChange }: SkillChecklistProps) {
  const toggle = (id: string): void =>
    onChange(skillIds.includes(id) ? skillIds.filter((other) => other !== id) : [...skillIds, id]);
  return (
    <details>
      <summary>Skills: {skillIds.length === 0 ? 'all' : pluralize(skillIds.length, 'skill')}</summary>
      <fieldset class="checks">
        <legend class="soft">
          Select the skills to practise. Other skills fade. Without a selection, the plan includes all skills.
        </legend>
        {skills.map(({ skill_id }) => (
          <label key={skill_id}>
            <input type="checkbox" checked={skillIds.includes(skill_id)} onChange={() => toggle(skill_id)} />{' '}
            <bdi>{getSkillName(skill_id)}</bdi>
          </label>
        ))}
      </fieldset>
    </details>
  );
}

interface PlanOutlook {
  readonly plan: string;
  readonly score: number;
  readonly low: number | null;
  readonly high: number | null;
}

const field = createColumnBuilder<PlanOutlook>();
const columns: readonly Column<PlanOutlook>[] = [
  field('Plan', 'plan'),
  field('Total', 'score'),
  field('Low', 'low', { align: 'end' }),
  field('High', 'high', { align: 'end' }),
];

const readTotal = (forecast: WhatIf | WhatIf['without_plan'], days: number): number =>
  forecast[`predicted_total_in_${days}_days`] as number;

function PlanOutcome({ forecast, usual }: { readonly forecast: WhatIf; readonly usual: number }) {
  const { days } = forecast.plan;
  const [planned, unplanned] = [readTotal(forecast, days), readTotal(forecast.without_plan, days)];
  const { low, high } = forecast.confidence_intervals.total;
  const { target_score, goal_probability, target_date } = forecast.goal_tracking;
  const hasGoal = hasOpenGoal(forecast.goal_tracking);
  const target = hasGoal ? target_score : null;
  const rows = useMemo(
    (): PlanOutlook[] => [
      { plan: 'Now', score: forecast.current_total, low: null, high: null },
      { plan: 'No change', score: unplanned, low: null, high: null },
      { plan: 'This plan', score: planned, low, high },
    ],
    [forecast],
  );
  const plot = useMemo(() => (rows: readonly PlanOutlook[]) => plotOutlook(rows, target), [target]);
  return (
    <>
      <p>
        <strong>{planned}</strong> in {pluralize(days, 'day')} ({low} to {high}):{' '}
        {formatSigned(planned - unplanned)} points compared with no change (about {formatDecimal(1)(usual)}{' '}
        answers per day).
        {hasGoal && (
          <>
            {' '}
            With this plan, chance of {target_score} points or more{' '}
            {target_date === null ? 'in one year' : `on ${formatDay(target_date)}`}:{' '}
            <strong>{formatChance(goal_probability)}</strong>.
          </>
        )}
      </p>
      {hasGoal && (
        <p class="soft">
          {forecast.needed_answers_per_day === null
            ? `Even 1,000 answers per day are not expected to reach ${target_score} in ${pluralize(forecast.needed_within_days ?? days, 'day')}.`
            : `Expected minimum to reach ${target_score} in ${pluralize(forecast.needed_within_days ?? days, 'day')}: ${forecast.needed_answers_per_day ?? missingText} answers per day.`}
        </p>
      )}
      <Chart
        title={`Total score in ${pluralize(days, 'day')}`}
        about={`${target === null ? '' : `Dashed line: goal ${target}. `}Horizontal line: ${formatPercent(forecast.confidence_level)} range.`}
        plot={plot}
        rows={rows}
        columns={columns}
        height={170}
      />
    </>
  );
}

const plotOutlook = (rows: readonly PlanOutlook[], target: number | null): Plot.PlotOptions => ({
  marginLeft: 72,
  x: {
    ...{ label: 'total score', grid: true, tickFormat: 'd' },
    domain: computeDomain(
      [
        ...(target === null ? [] : [target]),
        ...rows.flatMap(({ score, low, high }) => [score, low ?? score, high ?? score]),
      ],
      [400, 1600],
      200,
    ),
  },
  y: { type: 'point', domain: rows.map(({ plan }) => plan), label: null },
  marks: [
    Plot.ruleX(target === null ? [] : [target], {
      stroke: 'var(--b)',
      strokeWidth: 2,
      strokeDasharray: '6 4',
    }),
    Plot.ruleY(
      rows.filter(({ low }) => low !== null),
      { y: 'plan', x1: 'low', x2: 'high', stroke: 'var(--a)', strokeWidth: 3, strokeOpacity: 0.45 },
    ),
    Plot.dot(rows, { x: 'score', y: 'plan', r: 6, fill: 'var(--a)' }),
    Plot.text(rows, {
      x: 'score',
      y: 'plan',
      text: ({ score }: PlanOutlook) => `${score}`,
      dy: -13,
      fill: 'var(--text)',
    }),
  ],
});
