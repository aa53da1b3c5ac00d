import { useId } from 'preact/hooks';
import type { Settings } from '../../../../client/types.js';
import { useAction } from '../../base/action.js';
import { formatDay, formatDayTime, pluralize } from '../../base/format.js';
import { useInterval } from '../../base/interval.js';
import { useLoad } from '../../base/load.js';
import { useViewer } from '../../base/viewer.js';
import { ErrorNote, Loaded } from '../../parts/loaded.jsx';
import { Badge, Facts, Panel } from '../../parts/stat.jsx';

/** While a change is running. */
const pollMs = 3000;

export function SettingsPart() {
  const { api, ownKey, hasScope } = useViewer();
  const settings = useLoad((signal) => api.settings({ signal }), [api]);
  const isRunning = settings.data?.time_zone_change?.status === 'running';
  useInterval(settings.reload, isRunning ? pollMs : null);
  return (
    <Panel
      title={`Time zone of ${ownKey.tenant}`}
      about="The API and the dashboard count days, goal dates and periods in this time zone."
    >
      <Loaded load={settings} subject="the settings">
        {({ time_zone, today, time_zone_change: change }) => (
          <Facts
            facts={[
              ['Time zone', time_zone],
              ['Today', formatDay(today)],
              ['Last change', change === null ? 'none' : <ChangeState key="change" {...change} />],
            ]}
          />
        )}
      </Loaded>
      {hasScope('admin') ? (
        <TimeZoneForm onSaved={settings.reload} />
      ) : (
        <p class="soft">
          Changing the time zone requires a key with the scope <code>admin</code>.
        </p>
      )}
    </Panel>
  );
}

const ChangeState = ({
  status,
  requested_at,
  done_at,
  learners,
}: NonNullable<Settings['time_zone_change']>) => (
  <>
    <Badge tone={status === 'done' ? 'good' : 'soft'}>{status}</Badge> requested {formatDayTime(requested_at)}
    {done_at !== null && `, done ${formatDayTime(done_at)}`}; {pluralize(learners, 'learner')} moved
  </>
);

/** Suggestions. The service may know more names. */
const timeZones = [...new Set(['UTC', ...Intl.supportedValuesOf('timeZone')])];

function TimeZoneForm({ onSaved }: { readonly onSaved: () => void }) {
  const { api, reloadKey } = useViewer();
  const id = useId();
  const { run, isBusy, error } = useAction(async (timeZone: string) => {
    await api.setSettings({ time_zone: timeZone });
    reloadKey();
    onSaved();
  });
  const submit = (event: Event): void => {
    event.preventDefault();
    void run(String(new FormData(event.currentTarget as HTMLFormElement).get('zone')).trim());
  };
  return (
    <form class="stack" onSubmit={submit}>
      <p class="soft">
        A change also moves earlier answers to the days of the new time zone. It runs in the background and
        moves all answers of a learner together.
      </p>
      <div class="row">
        <label class="field">
          New time zone
          <input
            {...{ name: 'zone', list: `${id}-zones`, placeholder: 'Europe/Berlin', required: true }}
            {...{ autocomplete: 'off', spellcheck: false }}
            aria-invalid={error !== null}
            aria-describedby={`${id}-error`}
          />
        </label>
        <button type="submit" class="primary" disabled={isBusy}>
          Save
        </button>
      </div>
      <datalist id={`${id}-zones`}>
        {timeZones.map((zone) => (
          <option key={zone} value={zone} />
        ))}
      </datalist>
      {error !== null && (
        <div id={`${id}-error`}>
          <ErrorNote error={error} />
        </div>
      )}
    </form>
  );
}
