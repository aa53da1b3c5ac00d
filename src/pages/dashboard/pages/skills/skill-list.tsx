import { useMemo } from 'preact/hooks';
import type { SkillPage, SkillStatisticsPage } from '../../../../client/types.js';
import { formatPercent, missingText } from '../../base/format.js';
import { useLoad } from '../../base/load.js';
import { buildHref } from '../../base/route.js';
import { useViewer } from '../../base/viewer.js';
import { ErrorNote, Loaded, Loading } from '../../parts/loaded.jsx';
import './skills.css';
import { formatSection } from '../../base/skill-names.js';
import { type Column, createColumnBuilder, Table } from '../../parts/table.jsx';
import { AccuracyOverview, type SkillPoint } from './accuracy-overview.jsx';
import { originTexts } from './parameters.jsx';

type CatalogueSkill = SkillPage['skills'][number];
type Statistics = SkillStatisticsPage['skills'][number];

/** Statistics are null without stored answers, or while ClickHouse is unavailable. */
type Row = CatalogueSkill & { readonly statistics: Statistics | null };

/** Page limit of the API. */
const maxSkills = 1000;

export function SkillList() {
  const { api } = useViewer();
  const catalogue = useLoad((signal) => api.skills({ limit: maxSkills, signal }), [api]);
  const statistics = useLoad((signal) => api.skillStatistics({ limit: maxSkills, signal }), [api]);
  // If the service is down, both loads fail, and one error note retries both.
  const reloadBoth = (): void => {
    catalogue.reload();
    if (statistics.error !== null) statistics.reload();
  };
  return (
    <>
      <h1>Skills</h1>
      <p class="soft">
        Results of all learners by skill, over all stored answers. Select a skill to see its learning curve,
        items and cohorts.
      </p>
      {statistics.error !== null && catalogue.error === null && (
        <>
          <ErrorNote error={statistics.error} retry={statistics.reload} />
          <p class="note">
            Statistics are unavailable. The table shows names, sections and current parameters.
          </p>
        </>
      )}
      {statistics.error === null && statistics.data === null && <Loading subject="the statistics" />}
      <Loaded load={{ ...catalogue, reload: reloadBoth }} subject="the skills">
        {(page) => <SkillListView catalogue={page} statistics={statistics.data?.skills ?? null} />}
      </Loaded>
    </>
  );
}

function SkillListView({
  catalogue: { skills, next_cursor },
  statistics,
}: {
  catalogue: SkillPage;
  /** Null while loading, and after an error. */
  statistics: readonly Statistics[] | null;
}) {
  const rows = useMemo(() => {
    const known = new Map(statistics?.map((one) => [one.skill_id, one]));
    return skills.map((skill): Row => ({ ...skill, statistics: known.get(skill.skill_id) ?? null }));
  }, [skills, statistics]);
  const points = useMemo(() => rows.flatMap(toPoints), [rows]);
  if (rows.length === 0)
    return (
      <p class="note">
        <span>
          No skills yet. Skills appear with the first answers. Post an answer to{' '}
          <code>/api/v1/track-answer</code>, or run <code>npm run demo</code>.
        </span>
      </p>
    );
  return (
    <div class="stack">
      {statistics !== null && <AccuracyOverview rows={points} />}
      <section class="panel">
        {next_cursor !== null && <p class="soft">Shows the first {maxSkills} skills by id.</p>}
        <Table
          {...{
            name: 'Skills',
            columns: skillColumns,
            rows,
            filter: true,
            rowKey: ({ skill_id }: Row) => skill_id,
          }}
          sortedBy={['Correct', false]}
          orderParameter="sort"
        />
      </section>
    </div>
  );
}

const toPoints = ({ name, skill_id, section, statistics }: Row): SkillPoint[] =>
  statistics === null
    ? []
    : [
        {
          ...{ name: name ?? skill_id, section: formatSection(section), answers: statistics.answers },
          ...{ right: statistics.accuracy, predicted: statistics.mean_p_correct },
        },
      ];

/** @param velocity gain of mastery per answer, -1 to 1 */
export const formatVelocity = (velocity: number | null): string =>
  velocity === null
    ? missingText
    : `${velocity > 0 ? '+' : ''}${(100 * velocity).toFixed(1)}`.replace('-', '−');

const shareOptions = { format: formatPercent, align: 'end' } as const;

const field = createColumnBuilder<Row>();
const skillColumns: readonly Column<Row>[] = [
  field('Skill', ({ skill_id, name }) => name ?? skill_id, {
    show: ({ skill_id, name }) => (
      <a class="name" href={buildHref('skills', [skill_id])}>
        <bdi>{name ?? skill_id}</bdi>
      </a>
    ),
  }),
  field('Id', 'skill_id', { isForFile: true }),
  field('Section', ({ section }) => formatSection(section), {
    format: (section) => <span class="nowrap">{section}</span>,
  }),
  field('Weight', 'weight', { about: 'Weight of the skill in its section' }),
  field('Learners', ({ statistics }) => statistics?.learners ?? null, { align: 'end' }),
  field('Answers', ({ statistics }) => statistics?.answers ?? null, { align: 'end' }),
  field('Correct', ({ statistics }) => statistics?.accuracy ?? null, {
    ...shareOptions,
    about: 'Share of correct answers',
  }),
  field('Predicted', ({ statistics }) => statistics?.mean_p_correct ?? null, {
    ...shareOptions,
    about: 'Mean predicted probability of a correct answer',
  }),
  field('Plateaus', ({ statistics }) => statistics?.plateau_share ?? null, {
    ...shareOptions,
    about: 'Share of learners with a plateau on their last active day',
  }),
  field('Velocity', ({ statistics }) => statistics?.velocity_per_attempt ?? null, {
    format: formatVelocity,
    align: 'end',
    about: 'Median change of mastery per answer, in percentage points',
  }),
  field('Parameters', ({ origin }) => originTexts[origin].short, {
    format: (origin) => <span class="nowrap">{origin}</span>,
    about: 'Source of the current parameters',
  }),
];
