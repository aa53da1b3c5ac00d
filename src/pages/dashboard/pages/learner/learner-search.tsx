import { useEffect, useId, useMemo, useState } from 'preact/hooks';
import type { LearnersQuery, ListedLearner } from '../../../../client/types.js';
import { useDebounced } from '../../base/debounced.js';
import { formatDay, formatPercent, pluralize } from '../../base/format.js';
import { fetchNames, readLastGroup } from '../../base/groups.js';
import { useLoad } from '../../base/load.js';
import { usePagedList } from '../../base/paged-list.js';
import { buildHref } from '../../base/route.js';
import type { Api } from '../../base/session.js';
import { useViewer } from '../../base/viewer.js';
import { LearnerLink } from '../../parts/learner-link.jsx';
import { PagedTable } from '../../parts/paged-table.jsx';
import { type Column, createColumnBuilder } from '../../parts/table.jsx';

const maxResults = 12;

type Match = Pick<NamedLearner, 'user_id' | 'name'> & { readonly note: string };

interface SearchProps {
  readonly api: Api;
  readonly onOpen: (userId: string) => void;
}

/** Enter opens the typed id, even if the search is unavailable. A name opens its only match. */
export function LearnerSearch({ api, onOpen }: SearchProps) {
  const [text, setText] = useState('');
  const [activeIndex, setActiveIndex] = useState(-1);
  const id = useId();
  const { nameScope, learners, isPending, error } = useLearnerSearch(api, text);
  useEffect(() => setActiveIndex(-1), [learners]);
  useEffect(
    () => document.getElementById(`${id}-${activeIndex}`)?.scrollIntoView({ block: 'nearest' }),
    [activeIndex],
  );
  const submit = (event: Event): void => {
    event.preventDefault();
    const userId = learners[activeIndex]?.user_id ?? selectLearner(text.trim(), learners);
    if (userId !== undefined && userId !== '') onOpen(userId);
  };
  const handleKey = (event: KeyboardEvent): void => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === 'Escape') setText('');
    if (step === undefined || learners.length === 0) return;
    event.preventDefault();
    setActiveIndex((activeIndex + step + learners.length) % learners.length);
  };
  const isOpen = text !== '' && learners.length > 0;
  return (
    <search class="search">
      <form onSubmit={submit}>
        <label for={`${id}-text`}>Find a learner by the first characters of the id{nameScope}</label>
        <div class="row">
          <input
            id={`${id}-text`}
            type="text"
            role="combobox"
            dir="auto"
            autocomplete="off"
            spellcheck={false}
            maxLength={128}
            aria-expanded={isOpen}
            aria-controls={`${id}-list`}
            aria-autocomplete="list"
            aria-activedescendant={isOpen && activeIndex >= 0 ? `${id}-${activeIndex}` : undefined}
            value={text}
            onInput={(event) => setText(event.currentTarget.value)}
            onKeyDown={handleKey}
          />
          <button type="submit">Open</button>
        </div>
        <div id={`${id}-list`} role="listbox" aria-label="Matching learners" class="found" hidden={!isOpen}>
          {learners.map(({ user_id, name, note }, i) => (
            <a
              key={user_id}
              id={`${id}-${i}`}
              role="option"
              tabIndex={-1}
              aria-selected={i === activeIndex}
              href={buildHref('learner', [user_id])}
              onClick={() => setText('')}
            >
              <bdi>{name === user_id ? name : `${name} (${user_id})`}</bdi>
              <span class="soft">{note}</span>
            </a>
          ))}
        </div>
        <p class="soft" role="status">
          {describeResults(text, isPending, error, learners.length)}
        </p>
      </form>
    </search>
  );
}

function describeResults(text: string, isPending: boolean, error: unknown, count: number): string {
  if (text === '') return '';
  if (error !== null) return 'Search is unavailable. Type the complete id and press Enter.';
  if (isPending) return 'Searching…';
  if (count === 0) return 'No matching learners. Ids are case-sensitive. Press Enter to open this exact id.';
  return count > maxResults ? `Shows the first ${maxResults} learners. Type more characters.` : '';
}

const hasName = ({ user_id, name }: Match, typed: string): boolean =>
  name !== user_id && name.toLowerCase().includes(typed.toLowerCase());

/** Undefined if a name has several matches. */
function selectLearner(typed: string, learners: readonly Match[]): string | undefined {
  const isId = learners.some(({ user_id }) => user_id === typed);
  if (isId || !learners.some((learner) => hasName(learner, typed))) return typed;
  return learners.length === 1 ? learners[0]?.user_id : undefined;
}

/** The class that the user opened last. Without its names, the search finds ids only. */
function useLastClass(api: Api) {
  const groupId = readLastGroup(useViewer().ownKey.tenant);
  return useLoad(
    async (signal) => {
      if (groupId === undefined) return null;
      const { name: note, user_ids } = await api.group(groupId, { signal });
      const getName = await fetchNames(api, user_ids, signal);
      return { name: note, members: user_ids.map((user_id) => ({ user_id, name: getName(user_id), note })) };
    },
    [api, groupId],
  ).data;
}

function useLearnerSearch(api: Api, text: string) {
  const group = useLastClass(api);
  const typed = text.trim();
  const prefix = useDebounced(typed, 200);
  const load = useLoad((signal) => fetchById(api, prefix, signal), [api, prefix], true);
  const learners = useMemo(() => {
    if (typed === '') return [];
    const byName = group?.members.filter((learner) => hasName(learner, typed)) ?? [];
    const others = load.data?.filter(({ user_id }) => byName.every((one) => one.user_id !== user_id)) ?? [];
    return [...byName, ...others].slice(0, maxResults + 1);
  }, [group, typed, load.data]);
  const isPending = load.isLoading || prefix !== typed;
  const nameScope = group === null ? '' : `, or by name in ${group.name}`;
  return { nameScope, learners, isPending, error: load.error };
}

async function fetchById(api: Api, prefix: string, signal: AbortSignal): Promise<Match[]> {
  if (prefix === '') return [];
  const { learners } = await fetchNamedLearners(api, { prefix, limit: maxResults + 1, signal });
  return learners.map(({ user_id, name, total_attempts, last_day }) => ({
    ...{ user_id, name },
    note: `${pluralize(total_attempts, 'answer')}, last answer ${formatDay(last_day)}`,
  }));
}

interface NamedLearner extends ListedLearner {
  /** Display name, or the id. */
  readonly name: string;
}

async function fetchNamedLearners(api: Api, query: LearnersQuery & { readonly signal: AbortSignal }) {
  const page = await api.learners(query);
  const ids = page.learners.map(({ user_id }) => user_id);
  const getName = await fetchNames(api, ids, query.signal);
  const learners = page.learners.map((learner) => ({ ...learner, name: getName(learner.user_id) }));
  return { ...page, learners };
}

const field = createColumnBuilder<NamedLearner>();
const columns: readonly Column<NamedLearner>[] = [
  field('Learner', 'name', { show: ({ user_id, name }) => <LearnerLink userId={user_id} name={name} /> }),
  field('Learner id', 'user_id', { isForFile: true }),
  field('Answers', 'total_attempts'),
  field('Correct', ({ correct_attempts, total_attempts }) => correct_attempts / total_attempts, {
    format: formatPercent,
    about: 'Share of correct answers',
  }),
  field('Skills', 'skills', { about: 'Skills with at least one answer' }),
  field('Last answer', 'last_day', { format: formatDay }),
];

export function LearnerTable({ api }: { readonly api: Api }) {
  const learners = usePagedList((page) => fetchNamedLearners(api, { ...page, limit: 100 }), 'learners', [
    api,
  ]);
  return (
    <PagedTable
      list={learners}
      subject="learners"
      name="Learners"
      columns={columns}
      rowKey={({ user_id }) => user_id}
      filter
      empty="No answers yet. Post an answer, or run npm run demo. New answers appear after a few seconds."
    />
  );
}
