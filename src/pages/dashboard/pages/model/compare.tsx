import * as Plot from '@observablehq/plot';
import { useMemo } from 'preact/hooks';
import type { ModelVersion, ModelVersionPage } from '../../../../client/types.js';
import { decimal, none, percent, plural, points, shortened } from '../../base/format.js';
import { useLoad } from '../../base/load.js';
import { href, type Route } from '../../base/route.js';
import { useViewer } from '../../base/viewer.js';
import { Chart } from '../../parts/chart.jsx';
import { Choice } from '../../parts/choice.jsx';
import { Loaded } from '../../parts/loaded.jsx';
import { Panel } from '../../parts/stat.jsx';
import { type Column, fieldsOf, Table } from '../../parts/table.jsx';

type Skill = ModelVersion['skills'][number];
type Parameter = (typeof parameters)[number];

const parameters = ['p_init', 'p_learn', 'p_guess', 'p_slip', 'p_forget'] as const;

const titles: Readonly<Record<Parameter, string>> = {
  p_init: 'known before',
  p_learn: 'learned at an answer',
  p_guess: 'right without knowing',
  p_slip: 'wrong with knowing',
  p_forget: 'lost at an answer',
};

const parameterOf = (text: string | undefined): Parameter =>
  parameters.find((name) => name === text) ?? 'p_learn';

const versionOf = (text: string | undefined): number | null => {
  const version = Number(text);
  return text !== undefined && Number.isSafeInteger(version) && version > 0 ? version : null;
};

/** Default: the active version and the previous one. Null with fewer than two versions. */
function comparedOf(
  query: Route['query'],
  { in_force, versions }: ModelVersionPage,
): readonly [number, number] | null {
  const fitted = [...new Set(versions.map(({ version }) => version))].filter((version) => version > 0);
  const to = versionOf(query.to) ?? (in_force > 0 ? in_force : fitted[0]);
  const earlier = fitted.find((version) => version < (to ?? 0));
  const from = versionOf(query.from) ?? earlier ?? fitted.find((version) => version !== to);
  return from === undefined || to === undefined ? null : [from, to];
}

/** A skill in both versions; null in a version without it. */
interface Pair {
  readonly skillId: string;
  readonly before: Skill | null;
  readonly after: Skill | null;
}

function pairsOf(before: ModelVersion, after: ModelVersion): readonly Pair[] {
  const earlier = new Map(before.skills.map((skill) => [skill.skill_id, skill]));
  const later = new Map(after.skills.map((skill) => [skill.skill_id, skill]));
  const ids = [...new Set([...earlier.keys(), ...later.keys()])].sort();
  return ids.map((skillId) => ({
    skillId,
    before: earlier.get(skillId) ?? null,
    after: later.get(skillId) ?? null,
  }));
}

const changeOf = ({ before, after }: Pair, parameter: Parameter): number | null =>
  before === null || after === null ? null : after[parameter] - before[parameter];

export function Compare({ query, page }: { query: Route['query']; page: ModelVersionPage }) {
  const compared = comparedOf(query, page);
  if (compared === null)
    return (
      <Panel title="Compare two versions">
        <p class="soft">There are no two fitted versions yet.</p>
      </Panel>
    );
  const [from, to] = compared;
  const versions = [...new Set([...page.versions.map(({ version }) => version), from, to])]
    .filter((version) => version > 0)
    .sort((a, b) => b - a);
  const options = versions.map((one) => [one, `version ${one}`] as const);
  const parameter = parameterOf(query.parameter);
  return (
    <Panel
      title={`Version ${from} against version ${to}`}
      about="The parameters of each skill in both, as probabilities."
    >
      <div class="row">
        <Choice label="From" name="from" value={from} options={options} />
        <Choice label="To" name="to" value={to} options={options} />
        <Choice
          label="Parameter"
          name="parameter"
          value={parameter}
          options={parameters.map((one) => [one, `${one}: ${titles[one]}`] as const)}
        />
      </div>
      <Differences from={from} to={to} parameter={parameter} />
    </Panel>
  );
}

interface DifferencesProps {
  readonly from: number;
  readonly to: number;
  readonly parameter: Parameter;
}

function Differences({ from, to, parameter }: DifferencesProps) {
  const { api } = useViewer();
  const loaded = useLoad(
    async (signal) => {
      const options = { limit: 1000, signal };
      const [before, after] = await Promise.all([
        api.modelVersion(from, options),
        api.modelVersion(to, options),
      ]);
      return {
        pairs: pairsOf(before, after),
        isCut: before.next_cursor !== null || after.next_cursor !== null,
      };
    },
    [api, from, to],
  );
  return (
    <Loaded of={loaded} what="both versions">
      {({ pairs, isCut }) => (
        <>
          {isCut && <p class="soft">The first 1,000 skills of each.</p>}
          <Shown pairs={pairs} from={from} to={to} parameter={parameter} />
        </>
      )}
    </Loaded>
  );
}

const mostDrawn = 30;

function Shown({ pairs, from, to, parameter }: DifferencesProps & { pairs: readonly Pair[] }) {
  const changed = useMemo(() => {
    const size = (pair: Pair): number => Math.abs(changeOf(pair, parameter) ?? 0);
    return pairs.filter((pair) => size(pair) > 0).toSorted((a, b) => size(b) - size(a));
  }, [pairs, parameter]);
  const drawn = useMemo(() => changed.slice(0, mostDrawn), [changed]);
  const plot = useMemo(() => plotOf(parameter, from, to), [parameter, from, to]);
  const columns = useMemo(() => columnsOf(from, to), [from, to]);
  return (
    <>
      <p>
        {changed.length === 0 ? 'No skill has' : `${plural(changed.length, 'skill has', 'skills have')}`}{' '}
        another {parameter} ({titles[parameter]}), of {plural(pairs.length, 'skill')}.
        {changed.length > mostDrawn && ` The ${mostDrawn} greatest changes are drawn.`}
      </p>
      {drawn.length > 0 && (
        <Chart
          title={`${parameter} of each skill: ${titles[parameter]}`}
          about={`Rings: version ${from}; dots: version ${to}.`}
          plot={plot}
          rows={drawn}
          columns={columns}
          height={60 + 22 * drawn.length}
        />
      )}
      <Table
        name={`Differences of version ${from} and version ${to}`}
        columns={columns}
        rows={pairs}
        rowKey={({ skillId }) => skillId}
        filter
        empty="Neither has a skill."
      />
    </>
  );
}

const plotOf =
  (parameter: Parameter, from: number, to: number) =>
  (pairs: readonly Pair[]): Plot.PlotOptions => {
    const value = (skill: Skill | null): number => skill?.[parameter] ?? 0;
    const note = (version: number, skill: Skill | null): string =>
      `${skill?.skill_id}, version ${version}: ${percent(value(skill))}`;
    return {
      marginLeft: 140,
      x: { label: parameter, tickFormat: '.0%', grid: true, nice: true, ticks: 5, zero: true },
      y: {
        label: null,
        domain: pairs.map(({ skillId }) => skillId),
        tickFormat: (id: string) => shortened(id, 20),
      },
      marks: [
        Plot.arrow(pairs, {
          ...{
            x1: ({ before }: Pair) => value(before),
            x2: ({ after }: Pair) => value(after),
            y1: 'skillId',
            y2: 'skillId',
          },
          ...{ stroke: 'var(--bar)', strokeWidth: 2, headLength: 0 },
        }),
        Plot.dot(pairs, {
          ...{ x: ({ before }: Pair) => value(before), y: 'skillId', r: 4, strokeWidth: 2 },
          ...{ fill: 'var(--panel)', stroke: 'var(--soft)' },
          title: ({ before }: Pair) => note(from, before),
        }),
        Plot.dot(pairs, {
          ...{ x: ({ after }: Pair) => value(after), y: 'skillId', r: 4.5, fill: 'var(--a)' },
          title: ({ after }: Pair) => note(to, after),
        }),
      ],
    };
  };

function columnsOf(from: number, to: number): Column<Pair>[] {
  const field = fieldsOf<Pair>();
  const change = (parameter: Parameter) =>
    field(`${parameter} (change)`, (pair) => changeOf(pair, parameter), {
      about: `${titles[parameter]}: in version ${to}, and percentage points against version ${from}`,
      show: (pair) =>
        pair.after === null
          ? none
          : `${decimal(3)(pair.after[parameter])} (${points(changeOf(pair, parameter))})`,
      align: 'end',
    });
  return [
    field('Skill', 'skillId', {
      format: (skillId) => (
        <a class="words" href={href('skills', [skillId])}>
          <bdi>{skillId}</bdi>
        </a>
      ),
    }),
    ...parameters.map(change),
    field(`In version ${to}`, ({ after }) =>
      after === null ? 'not there' : after.published ? 'new' : `as in version ${after.parameters_version}`,
    ),
    field('Why', ({ after }) => after?.reason ?? null, {
      format: (reason) => (reason === null ? none : <span class="long">{reason}</span>),
    }),
    field('Answers', ({ after }) => after?.answers ?? null, { align: 'end' }),
    field('Log loss', ({ after }) => after?.new_log_loss ?? null, {
      about:
        'On answers that the fit has not seen: with what was in force, and with what was fitted; lower is better',
      show: ({ after }) =>
        after === null ? none : `${decimal(4)(after.old_log_loss)} → ${decimal(4)(after.new_log_loss)}`,
      align: 'end',
    }),
    field('Log loss before', ({ after }) => after?.old_log_loss ?? null, { isForFile: true }),
    ...parameters.flatMap((name) => [
      field(`${name} in version ${from}`, ({ before }) => before?.[name] ?? null, { isForFile: true }),
      field(`${name} in version ${to}`, ({ after }) => after?.[name] ?? null, { isForFile: true }),
    ]),
  ];
}
