import { useEffect, useId, useState } from 'preact/hooks';
import type { ListedLearner } from '../../../../client/types.js';
import { day, percent, plural } from '../../base/format.js';
import { useLoad } from '../../base/load.js';
import { usePaged } from '../../base/paged.js';
import { href } from '../../base/route.js';
import type { Api } from '../../base/session.js';
import { useSettled } from '../../base/settled.js';
import { PagedTable } from '../../parts/paged.jsx';
import { type Column, fieldsOf } from '../../parts/table.jsx';

const mostFound = 12;

interface SearchProps {
  readonly api: Api;
  readonly onOpen: (userId: string) => void;
}

/** Enter opens the typed id, even if the search is unavailable. */
export function LearnerSearch({ api, onOpen }: SearchProps) {
  const [text, setText] = useState('');
  const [chosen, choose] = useState(-1);
  const id = useId();
  const { found, isLate, error } = useFound(api, text);
  useEffect(() => choose(-1), [found]);
  useEffect(() => document.getElementById(`${id}-${chosen}`)?.scrollIntoView({ block: 'nearest' }), [chosen]);
  const submit = (event: Event): void => {
    event.preventDefault();
    const wanted = found[chosen]?.user_id ?? text.trim();
    if (wanted !== '') onOpen(wanted);
  };
  const move = (event: KeyboardEvent): void => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === 'Escape') setText('');
    if (step === undefined || found.length === 0) return;
    event.preventDefault();
    choose((chosen + step + found.length) % found.length);
  };
  const isOpen = text !== '' && found.length > 0;
  return (
    <search class="search">
      <form onSubmit={submit}>
        <label for={`${id}-text`}>Find a learner by the beginning of the id</label>
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
            aria-activedescendant={isOpen && chosen >= 0 ? `${id}-${chosen}` : undefined}
            value={text}
            onInput={(event) => setText(event.currentTarget.value)}
            onKeyDown={move}
          />
          <button type="submit">Open</button>
        </div>
        <div id={`${id}-list`} role="listbox" aria-label="Learners found" class="found" hidden={!isOpen}>
          {found.map(({ user_id, total_attempts, last_day }, i) => (
            <a
              key={user_id}
              id={`${id}-${i}`}
              role="option"
              tabIndex={-1}
              aria-selected={i === chosen}
              href={href('learner', [user_id])}
              onClick={() => setText('')}
            >
              <bdi>{user_id}</bdi>
              <span class="soft">
                {plural(total_attempts, 'answer')}, last on {day(last_day)}
              </span>
            </a>
          ))}
        </div>
        <p class="soft" role="status">
          {statusOf(text, isLate, error, found.length)}
        </p>
      </form>
    </search>
  );
}

function statusOf(text: string, isLate: boolean, error: unknown, found: number): string {
  if (text === '') return '';
  if (error !== null) return 'Names cannot be looked up now. Write the whole id and press Enter.';
  if (isLate) return 'Looking…';
  if (found === 0)
    return 'No learner’s id begins with this; capital and small letters differ. Enter opens it as written.';
  return found > mostFound ? `The first ${mostFound} are shown: write more of the id.` : '';
}

function useFound(api: Api, text: string) {
  const prefix = useSettled(text.trim(), 200);
  const load = useLoad(
    async (signal) =>
      prefix === '' ? [] : (await api.learners({ prefix, limit: mostFound + 1, signal })).learners,
    [api, prefix],
    true,
  );
  return {
    found: load.data ?? nobody,
    isLate: load.isLoading || prefix !== text.trim(),
    error: load.error,
  };
}

const nobody: readonly ListedLearner[] = [];

const field = fieldsOf<ListedLearner>();
const columns: readonly Column<ListedLearner>[] = [
  field('Learner', 'user_id', {
    format: (user_id) => (
      <a href={href('learner', [user_id])}>
        <bdi>{user_id}</bdi>
      </a>
    ),
  }),
  field('Answers', 'total_attempts'),
  field('Right', ({ correct_attempts, total_attempts }) => correct_attempts / total_attempts, {
    format: percent,
    about: 'Share of all answers that were right',
  }),
  field('Skills', 'skills', { about: 'Skills with at least one answer' }),
  field('Last answer', 'last_day', { format: day, about: 'UTC day of the last answer' }),
];

export function LearnerTable({ api }: { readonly api: Api }) {
  const learners = usePaged((page) => api.learners({ ...page, limit: 100 }), 'learners', [api]);
  return (
    <PagedTable
      of={learners}
      what="learners"
      name="Learners"
      columns={columns}
      rowKey={({ user_id }) => user_id}
      filter
      empty="No answers yet: post one, or run npm run demo. New answers are listed after a few seconds."
    />
  );
}
