import * as Plot from '@observablehq/plot';
import { useMemo, useState } from 'preact/hooks';
import type { Plan, Prediction, WhatIf } from '../../../../client/types.js';
import { computeDomain } from '../../../../lab/report/marks.js';
import { day, decimal, none, percent, plural, signed } from '../../base/format.js';
import { useLoad } from '../../base/load.js';
import { useSettled } from '../../base/settled.js';
import { useViewer } from '../../base/viewer.js';
import { Chart } from '../../parts/chart.jsx';
import { Loaded } from '../../parts/loaded.jsx';
import { Panel } from '../../parts/stat.jsx';
import { type Column, fieldsOf } from '../../parts/table.jsx';
import type { LearnerProps, NamedSkills } from './learner-props.js';

interface WhatIfProps extends LearnerProps {
  readonly prediction: Prediction;
  readonly level: number;
}

const mostAnswers = 100;
const leastShown = 5;

export function WhatIfPanel({ userId, prediction, skills, nameOf, level }: WhatIfProps) {
  const { api } = useViewer();
  const { math, rw } = prediction.assumed_practice;
  const usual = math.answers_per_day + rw.answers_per_day;
  const [answers, setAnswers] = useState(() =>
    Math.min(mostAnswers, Math.max(leastShown, Math.round(usual))),
  );
  const [days, setDays] = useState(90);
  const [chosen, choose] = useState<readonly string[]>([]);
  const plan = useMemo(
    (): Plan => ({
      answers_per_day: answers,
      days,
      confidence_level: level,
      skills: chosen.length === 0 ? null : chosen,
    }),
    [answers, days, chosen, level],
  );
  const settled = useSettled(plan, 200);
  const { target_score, target_date } = prediction.goal_tracking;
  const whatIf = useLoad(
    (signal) => api.whatIf(userId, settled, { signal }),
    [api, userId, settled, target_score, target_date],
    true,
  );
  return (
    <Panel title="What if" about="Another plan, kept every day from today on. Nothing is stored.">
      <Slider
        label="Answers a day"
        value={answers}
        min={0}
        max={mostAnswers}
        onInput={setAnswers}
        show={String}
      />
      <Slider
        label="Look ahead"
        value={days}
        min={1}
        max={365}
        onInput={setDays}
        show={(n) => plural(n, 'day')}
      />
      <SkillChoice skills={skills} nameOf={nameOf} chosen={chosen} onChoose={choose} />
      <Loaded of={whatIf} what="the plan">
        {(of) => <Outcome of={of} usual={usual} />}
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
  readonly show: (value: number) => string;
}

const Slider = ({ label, value, min, max, onInput, show }: SliderProps) => (
  <label class="slider">
    <span>{label}</span>
    <input
      type="range"
      {...{ min, max, value }}
      aria-valuetext={show(value)}
      onInput={(event) => onInput(event.currentTarget.valueAsNumber)}
    />
    <output>{show(value)}</output>
  </label>
);

interface SkillChoiceProps extends NamedSkills {
  readonly chosen: readonly string[];
  readonly onChoose: (chosen: readonly string[]) => void;
}

function SkillChoice({ skills, nameOf, chosen, onChoose }: SkillChoiceProps) {
  const toggle = (id: string): void =>
    onChoose(chosen.includes(id) ? chosen.filter((other) => other !== id) : [...chosen, id]);
  return (
    <details>
      <summary>Skills: {chosen.length === 0 ? 'all, as now' : plural(chosen.length, 'skill')}</summary>
      <fieldset class="checks">
        <legend class="soft">Only these are practised; the others fade. None ticked: all.</legend>
        {skills.map(({ skill_id }) => (
          <label key={skill_id}>
            <input type="checkbox" checked={chosen.includes(skill_id)} onChange={() => toggle(skill_id)} />{' '}
            <bdi>{nameOf(skill_id)}</bdi>
          </label>
        ))}
      </fieldset>
    </details>
  );
}

interface Outlook {
  readonly plan: string;
  readonly score: number;
  readonly low: number | null;
  readonly high: number | null;
}

const field = fieldsOf<Outlook>();
const columns: readonly Column<Outlook>[] = [
  field('Plan', 'plan'),
  field('Total', 'score'),
  field('Low', 'low', { align: 'end' }),
  field('High', 'high', { align: 'end' }),
];

const totalIn = (of: WhatIf | WhatIf['without_plan'], days: number): number =>
  of[`predicted_total_in_${days}_days`] as number;

function Outcome({ of, usual }: { readonly of: WhatIf; readonly usual: number }) {
  const { days } = of.plan;
  const [planned, unplanned] = [totalIn(of, days), totalIn(of.without_plan, days)];
  const { low, high } = of.confidence_intervals.total;
  const { target_score, goal_probability, target_date } = of.goal_tracking;
  const rows = useMemo(
    (): Outlook[] => [
      { plan: 'Now', score: of.current_total, low: null, high: null },
      { plan: 'As so far', score: unplanned, low: null, high: null },
      { plan: 'This plan', score: planned, low, high },
    ],
    [of],
  );
  const plot = useMemo(() => (rows: readonly Outlook[]) => outlookPlot(rows, target_score), [target_score]);
  return (
    <>
      <p>
        <strong>{planned}</strong> in {plural(days, 'day')} ({low} to {high}): {signed(planned - unplanned)}{' '}
        points against going on as so far (about {decimal(1)(usual)} answers a day). Chance to stand at{' '}
        {target_score} {target_date === null ? 'in a year' : `on ${day(target_date)}`}:{' '}
        <strong>{percent(goal_probability)}</strong>.
      </p>
      <p class="soft">
        {of.needed_answers_per_day === null
          ? `No number of answers a day up to 1,000 is expected to reach ${target_score} in ${plural(of.needed_within_days ?? days, 'day')}.`
          : `Least that is expected to reach ${target_score} in ${plural(of.needed_within_days ?? days, 'day')}: ${of.needed_answers_per_day ?? none} answers a day.`}
      </p>
      <Chart
        title={`Total in ${plural(days, 'day')}`}
        about={`Dashed: the goal ${target_score}. The line through a dot is its ${percent(of.confidence_level)} interval.`}
        plot={plot}
        rows={rows}
        columns={columns}
        height={170}
      />
    </>
  );
}

const outlookPlot = (rows: readonly Outlook[], target: number): Plot.PlotOptions => ({
  marginLeft: 72,
  x: {
    ...{ label: 'total score', grid: true, tickFormat: 'd' },
    domain: computeDomain(
      [target, ...rows.flatMap(({ score, low, high }) => [score, low ?? score, high ?? score])],
      [400, 1600],
      200,
    ),
  },
  y: { type: 'point', domain: rows.map(({ plan }) => plan), label: null },
  marks: [
    Plot.ruleX([target], { stroke: 'var(--b)', strokeWidth: 2, strokeDasharray: '6 4' }),
    Plot.ruleY(
      rows.filter(({ low }) => low !== null),
      { y: 'plan', x1: 'low', x2: 'high', stroke: 'var(--a)', strokeWidth: 3, strokeOpacity: 0.45 },
    ),
    Plot.dot(rows, { x: 'score', y: 'plan', r: 6, fill: 'var(--a)' }),
    Plot.text(rows, {
      x: 'score',
      y: 'plan',
      text: ({ score }: Outlook) => `${score}`,
      dy: -13,
      fill: 'var(--text)',
    }),
  ],
});
