import { useMemo } from 'preact/hooks';
import type { SkillPage, SkillStatisticsPage } from '../../../../client/types.js';
import { none, percent } from '../../base/format.js';
import { useLoad } from '../../base/load.js';
import { href } from '../../base/route.js';
import { useViewer } from '../../base/viewer.js';
import { ErrorNote, Loaded, Loading } from '../../parts/loaded.jsx';
import './skills.css';
import { sectionName } from '../../base/skill-names.js';
import { type Column, fieldsOf, Table } from '../../parts/table.jsx';
import { Overview, type Point } from './overview.jsx';
import { origins } from './parameters.jsx';

type Catalogued = SkillPage['skills'][number];
type Statistics = SkillStatisticsPage['skills'][number];

/** Statistics are null without stored answers, or while ClickHouse is unavailable. */
type Row = Catalogued & { readonly statistics: Statistics | null };

/** Page limit of the API. */
const mostSkills = 1000;

export function SkillList() {
  const { api } = useViewer();
  const catalogue = useLoad((signal) => api.skills({ limit: mostSkills, signal }), [api]);
  const statistics = useLoad((signal) => api.skillStatistics({ limit: mostSkills, signal }), [api]);
  // If the service is down, both loads fail, and one error note retries both.
  const both = (): void => {
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
      {statistics.error === null && statistics.data === null && <Loading what="how learners do" />}
      <Loaded of={{ ...catalogue, reload: both }} what="the skills">
        {(page) => <Listed catalogue={page} statistics={statistics.data?.skills ?? null} />}
      </Loaded>
    </>
  );
}

function Listed({
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
  const points = useMemo(() => rows.flatMap(pointsOf), [rows]);
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
      {statistics !== null && <Overview rows={points} />}
      <section class="panel">
        {next_cursor !== null && <p class="soft">The first {mostSkills} by their ids; there are more.</p>}
        <Table
          {...{ name: 'Skills', columns, rows, filter: true, rowKey: ({ skill_id }: Row) => skill_id }}
          sortedBy={['Right', false]}
          orderedIn="sort"
        />
      </section>
    </div>
  );
}

const pointsOf = ({ name, skill_id, section, statistics }: Row): Point[] =>
  statistics === null
    ? []
    : [
        {
          ...{ name: name ?? skill_id, section: sectionName(section), answers: statistics.answers },
          ...{ right: statistics.accuracy, predicted: statistics.mean_p_correct },
        },
      ];

/** @param velocity gain of mastery per answer, -1 to 1 */
export const velocityText = (velocity: number | null): string =>
  velocity === null ? none : `${velocity > 0 ? '+' : ''}${(100 * velocity).toFixed(1)}`.replace('-', '−');

const share = { format: percent, align: 'end' } as const;

const field = fieldsOf<Row>();
const columns: readonly Column<Row>[] = [
  field('Skill', ({ skill_id, name }) => name ?? skill_id, {
    show: ({ skill_id, name }) => (
      <a class="name" href={href('skills', [skill_id])}>
        <bdi>{name ?? skill_id}</bdi>
      </a>
    ),
  }),
  field('Id', 'skill_id', { isForFile: true }),
  field('Section', ({ section }) => sectionName(section), {
    format: (section) => <span class="nowrap">{section}</span>,
  }),
  field('Weight', 'weight', { about: 'What the skill counts in its section, against the others' }),
  field('Learners', ({ statistics }) => statistics?.learners ?? null, { align: 'end' }),
  field('Answers', ({ statistics }) => statistics?.answers ?? null, { align: 'end' }),
  field('Right', ({ statistics }) => statistics?.accuracy ?? null, {
    ...share,
    about: 'Share of right answers',
  }),
  field('Predicted', ({ statistics }) => statistics?.mean_p_correct ?? null, {
    ...share,
    about: 'Mean of the probabilities of a right answer that were given before the answers came',
  }),
  field('Plateaus', ({ statistics }) => statistics?.plateau_share ?? null, {
    ...share,
    about: 'Share of learners whom practice on it no longer moved at some answer of their last day',
  }),
  field('Velocity', ({ statistics }) => statistics?.velocity_per_attempt ?? null, {
    format: velocityText,
    align: 'end',
    about: 'Percentage points of mastery that an answer brings the learner in the middle',
  }),
  field('Parameters', ({ origin }) => origins[origin].short, {
    format: (origin) => <span class="nowrap">{origin}</span>,
    about: 'Where the parameters in force come from',
  }),
];
