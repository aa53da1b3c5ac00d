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
        How all learners do on each skill, over all answers that are stored. A skill's name opens its learning
        curve, items and cohorts.
      </p>
      {statistics.error !== null && catalogue.error === null && (
        <>
          <ErrorNote error={statistics.error} retry={statistics.reload} />
          <p class="note">Without them there are only names, sections and the parameters in force.</p>
        </>
      )}
      {statistics.error === null && statistics.data === null && <Loading subject="how learners do" />}
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
          No skills yet: they come with the first answers. Post one to <code>/api/v1/track-answer</code>, or
          run <code>npm run demo</code>.
        </span>
      </p>
    );
  return (
    <div class="stack">
      {statistics !== null && <AccuracyOverview rows={points} />}
      <section class="panel">
        {next_cursor !== null && <p class="soft">The first {maxSkills} by their ids; there are more.</p>}
        <Table
          {...{
            name: 'Skills',
            columns: skillColumns,
            rows,
            filter: true,
            rowKey: ({ skill_id }: Row) => skill_id,
          }}
          sortedBy={['Right', false]}
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
  field('Weight', 'weight', { about: 'What the skill counts in its section, against the others' }),
  field('Learners', ({ statistics }) => statistics?.learners ?? null, { align: 'end' }),
  field('Answers', ({ statistics }) => statistics?.answers ?? null, { align: 'end' }),
  field('Right', ({ statistics }) => statistics?.accuracy ?? null, {
    ...shareOptions,
    about: 'Share of right answers',
  }),
  field('Predicted', ({ statistics }) => statistics?.mean_p_correct ?? null, {
    ...shareOptions,
    about: 'Mean of the probabilities of a right answer that were given before the answers came',
  }),
  field('Plateaus', ({ statistics }) => statistics?.plateau_share ?? null, {
    ...shareOptions,
    about: 'Share of learners whom practice on it no longer moved at some answer of their last day',
  }),
  field('Velocity', ({ statistics }) => statistics?.velocity_per_attempt ?? null, {
    format: formatVelocity,
    align: 'end',
    about: 'Percentage points of mastery that an answer brings the learner in the middle',
  }),
  field('Parameters', ({ origin }) => originTexts[origin].short, {
    format: (origin) => <span class="nowrap">{origin}</span>,
    about: 'Where the parameters in force come from',
  }),
];
