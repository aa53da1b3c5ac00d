import * as Plot from '@observablehq/plot';
import { useMemo } from 'preact/hooks';
import type { ModelVersion, ModelVersionPage } from '../../../../client/types.js';
import { formatShareTick } from '../../../../lab/report/marks.js';
import {
  formatDecimal,
  formatPercent,
  formatPoints,
  missingText,
  pluralize,
  truncate,
} from '../../base/format.js';
import { useLoad } from '../../base/load.js';
import { buildHref, type Route } from '../../base/route.js';
import type { Api } from '../../base/session.js';
import { useViewer } from '../../base/viewer.js';
import { Chart } from '../../parts/chart.jsx';
import { Loaded } from '../../parts/loaded.jsx';
import { QuerySelect } from '../../parts/query-select.jsx';
import { Panel } from '../../parts/stat.jsx';
import { type Column, createColumnBuilder, Table } from '../../parts/table.jsx';

type Skill = ModelVersion['skills'][number];
type Parameter = (typeof parameters)[number];

const parameters = ['p_init', 'p_learn', 'p_guess', 'p_slip', 'p_forget'] as const;

export const parameterTexts: Readonly<Record<Parameter, string>> = {
  p_init: 'known before the first answer',
  p_learn: 'learned per answer',
  p_guess: 'correct without knowing',
  p_slip: 'incorrect despite knowing',
  p_forget: 'lost per answer',
};

const parseParameter = (text: string | undefined): Parameter =>
  parameters.find((name) => name === text) ?? 'p_learn';

const parseVersion = (text: string | undefined): number | null => {
  const version = Number(text);
  return text !== undefined && Number.isSafeInteger(version) && version > 0 ? version : null;
};

/** Default: the active version and the previous one. Null with fewer than two versions. */
function selectVersions(
  query: Route['query'],
  { in_force, versions }: ModelVersionPage,
): readonly [number, number] | null {
  const fitted = [...new Set(versions.map(({ version }) => version))].filter((version) => version > 0);
  const to = parseVersion(query.to) ?? (in_force > 0 ? in_force : fitted[0]);
  const earlier = fitted.find((version) => version < (to ?? 0));
  const from = parseVersion(query.from) ?? earlier ?? fitted.find((version) => version !== to);
  return from === undefined || to === undefined ? null : [from, to];
}

/** A skill in both versions; null in a version without it. */
interface SkillPair {
  readonly skillId: string;
  readonly before: Skill | null;
  readonly after: Skill | null;
}

function pairSkills(before: ModelVersion, after: ModelVersion): readonly SkillPair[] {
  const earlier = new Map(before.skills.map((skill) => [skill.skill_id, skill]));
  const later = new Map(after.skills.map((skill) => [skill.skill_id, skill]));
  const ids = [...new Set([...earlier.keys(), ...later.keys()])].sort();
  return ids.map((skillId) => ({
    skillId,
    before: earlier.get(skillId) ?? null,
    after: later.get(skillId) ?? null,
  }));
}

export async function fetchPairs(api: Api, from: number, to: number, signal: AbortSignal) {
  const options = { limit: 1000, signal };
  const [before, after] = await Promise.all([api.modelVersion(from, options), api.modelVersion(to, options)]);
  return {
    pairs: pairSkills(before, after),
    isCut: before.next_cursor !== null || after.next_cursor !== null,
  };
}

interface ParameterChange {
  readonly skillId: string;
  readonly parameter: Parameter;
  /** Null: not published, so the skill has its default parameters. */
  readonly before: number | null;
  readonly after: number | null;
}

const readPublished = (skill: Skill | null, parameter: Parameter): number | null =>
  skill === null || skill.parameters_version === 0 ? null : skill[parameter];

/** Changes of published parameters, largest first. */
export function listChanges(pairs: readonly SkillPair[]): readonly ParameterChange[] {
  const changes = pairs.flatMap(({ skillId, before, after }) =>
    parameters.map((parameter) => ({
      ...{ skillId, parameter },
      before: readPublished(before, parameter),
      after: readPublished(after, parameter),
    })),
  );
  const size = ({ before, after }: ParameterChange): number => Math.abs((before ?? 0) - (after ?? 0));
  return changes.filter(({ before, after }) => before !== after).sort((a, b) => size(b) - size(a));
}

const computeChange = ({ before, after }: SkillPair, parameter: Parameter): number | null =>
  before === null || after === null ? null : after[parameter] - before[parameter];

export function VersionComparison({ query, page }: { query: Route['query']; page: ModelVersionPage }) {
  const compared = selectVersions(query, page);
  if (compared === null)
    return (
      <Panel title="Compare two versions">
        <p class="soft">There are fewer than two fitted versions.</p>
      </Panel>
    );
  const [from, to] = compared;
  const versions = [...new Set([...page.versions.map(({ version }) => version), from, to])]
    .filter((version) => version > 0)
    .sort((a, b) => b - a);
  const options = versions.map((one) => [one, `version ${one}`] as const);
  const parameter = parseParameter(query.parameter);
  return (
    <Panel
      title={`Version ${from} compared with version ${to}`}
      about="Parameters of each skill in both versions, as probabilities."
    >
      <div class="row">
        <QuerySelect label="From" parameter="from" value={from} options={options} />
        <QuerySelect label="To" parameter="to" value={to} options={options} />
        <QuerySelect
          label="Parameter"
          parameter="parameter"
          value={parameter}
          options={parameters.map((one) => [one, `${one}: ${parameterTexts[one]}`] as const)}
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
  const loaded = useLoad((signal) => fetchPairs(api, from, to, signal), [api, from, to]);
  return (
    <Loaded load={loaded} subject="both versions">
      {({ pairs, isCut }) => (
        <>
          {isCut && <p class="soft">Shows the first 1,000 skills of each version.</p>}
          <DifferencesView pairs={pairs} from={from} to={to} parameter={parameter} />
        </>
      )}
    </Loaded>
  );
}

const maxDrawn = 30;

function DifferencesView({ pairs, from, to, parameter }: DifferencesProps & { pairs: readonly SkillPair[] }) {
  const changed = useMemo(() => {
    const size = (pair: SkillPair): number => Math.abs(computeChange(pair, parameter) ?? 0);
    return pairs.filter((pair) => size(pair) > 0).toSorted((a, b) => size(b) - size(a));
  }, [pairs, parameter]);
  const drawn = useMemo(() => changed.slice(0, maxDrawn), [changed]);
  const plot = useMemo(() => createChangePlot(parameter, from, to), [parameter, from, to]);
  const columns = useMemo(() => buildColumns(from, to), [from, to]);
  return (
    <>
      <p>
        {parameter} ({parameterTexts[parameter]}) differs for {changed.length} of{' '}
        {pluralize(pairs.length, 'skill')}.
        {changed.length > maxDrawn && ` The chart shows the ${maxDrawn} largest changes.`}
      </p>
      {drawn.length > 0 && (
        <Chart
          title={`${parameter} of each skill: ${parameterTexts[parameter]}`}
          about={`Rings: version ${from}. Dots: version ${to}.`}
          plot={plot}
          rows={drawn}
          columns={columns}
          height={60 + 22 * drawn.length}
        />
      )}
      <Table
        name={`Differences between version ${from} and version ${to}`}
        columns={columns}
        rows={pairs}
        rowKey={({ skillId }) => skillId}
        filter
        empty="No skills in these versions."
      />
    </>
  );
}

const createChangePlot =
  (parameter: Parameter, from: number, to: number) =>
  (pairs: readonly SkillPair[]): Plot.PlotOptions => {
    const value = (skill: Skill | null): number => skill?.[parameter] ?? 0;
    const note = (version: number, skill: Skill | null): string =>
      `${skill?.skill_id}, version ${version}: ${formatPercent(value(skill))}`;
    return {
      marginLeft: 140,
      x: { label: parameter, tickFormat: formatShareTick, grid: true, nice: true, ticks: 5, zero: true },
      y: {
        label: null,
        domain: pairs.map(({ skillId }) => skillId),
        tickFormat: (id: string) => truncate(id, 20),
      },
      marks: [
        Plot.arrow(pairs, {
          ...{
            x1: ({ before }: SkillPair) => value(before),
            x2: ({ after }: SkillPair) => value(after),
            y1: 'skillId',
            y2: 'skillId',
          },
          ...{ stroke: 'var(--bar)', strokeWidth: 2, headLength: 0 },
        }),
        Plot.dot(pairs, {
          ...{ x: ({ before }: SkillPair) => value(before), y: 'skillId', r: 4, strokeWidth: 2 },
          ...{ fill: 'var(--panel)', stroke: 'var(--soft)' },
          title: ({ before }: SkillPair) => note(from, before),
        }),
        Plot.dot(pairs, {
          ...{ x: ({ after }: SkillPair) => value(after), y: 'skillId', r: 4.5, fill: 'var(--a)' },
          title: ({ after }: SkillPair) => note(to, after),
        }),
      ],
    };
  };

function buildColumns(from: number, to: number): Column<SkillPair>[] {
  const field = createColumnBuilder<SkillPair>();
  const change = (parameter: Parameter) =>
    field(`${parameter} (change)`, (pair) => computeChange(pair, parameter), {
      about: `${parameterTexts[parameter]}: value in version ${to}, and change from version ${from} in percentage points`,
      show: (pair) =>
        pair.after === null
          ? missingText
          : `${formatDecimal(3)(pair.after[parameter])} (${formatPoints(computeChange(pair, parameter))})`,
      align: 'end',
    });
  return [
    field('Skill', 'skillId', {
      format: (skillId) => (
        <a class="words" href={buildHref('skills', [skillId])}>
          <bdi>{skillId}</bdi>
        </a>
      ),
    }),
    ...parameters.map(change),
    field(`In version ${to}`, ({ after }) =>
      after === null ? 'missing' : after.published ? 'new' : `from version ${after.parameters_version}`,
    ),
    field('Reason', ({ after }) => after?.reason ?? null, {
      format: (reason) => (reason === null ? missingText : <span class="long">{reason}</span>),
    }),
    field('Answers', ({ after }) => after?.answers ?? null, { align: 'end' }),
    field('Log loss', ({ after }) => after?.new_log_loss ?? null, {
      about: 'On answers that the fit did not use: previous → fitted parameters. Lower is better',
      show: ({ after }) =>
        after === null
          ? missingText
          : `${formatDecimal(4)(after.old_log_loss)} → ${formatDecimal(4)(after.new_log_loss)}`,
      align: 'end',
    }),
    field('Previous log loss', ({ after }) => after?.old_log_loss ?? null, { isForFile: true }),
    ...parameters.flatMap((name) => [
      field(`${name} in version ${from}`, ({ before }) => before?.[name] ?? null, { isForFile: true }),
      field(`${name} in version ${to}`, ({ after }) => after?.[name] ?? null, { isForFile: true }),
    ]),
  ];
}
