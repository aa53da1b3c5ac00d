import { useState } from 'preact/hooks';
import type { Settings } from '../../../../client/types.js';
import { useAction } from '../../base/action.js';
import { formatDay, formatDayTime, pluralize } from '../../base/format.js';
import { useInterval } from '../../base/interval.js';
import { useLoad } from '../../base/load.js';
import { useViewer } from '../../base/viewer.js';
import { TextField } from '../../parts/field.jsx';
import { ErrorNote, Loaded } from '../../parts/loaded.jsx';
import { Facts, Panel } from '../../parts/stat.jsx';

/** While a change is running. */
const pollMs = 3000;

export function SettingsPart() {
  const { api, ownKey, hasScope } = useViewer();
  const settings = useLoad((signal) => api.settings({ signal }), [api, ownKey], true);
  const isRunning = settings.data?.time_zone_change?.status === 'running';
  useInterval(settings.reload, isRunning ? pollMs : null);
  return (
    <Panel
      title={`Time zone of ${ownKey.tenant}`}
      about="The API and the dashboard count days in this time zone. A change also moves earlier answers to the new days: in the background, and all answers of a learner together."
    >
      <Loaded load={settings} subject="the settings">
        {({ time_zone, today, time_zone_change: change }) => (
          <Facts
            facts={[
              ['Time zone', time_zone],
              ['Today', formatDay(today)],
              ['Last change', change === null ? 'none' : describeChange(change)],
            ]}
          />
        )}
      </Loaded>
      {hasScope('admin') ? (
        <TimeZoneForm />
      ) : (
        <p class="soft">Changing the time zone requires a key with the scope admin.</p>
      )}
    </Panel>
  );
}

type Change = NonNullable<Settings['time_zone_change']>;

const describeChange = ({ status, requested_at, done_at, learners }: Change): string =>
  `${status === 'done' ? 'done' : 'running since'} ${formatDayTime(done_at ?? requested_at)}; ${pluralize(learners, 'learner')} moved`;

/** The service may know more names. */
const timeZones = [...new Set(['UTC', ...Intl.supportedValuesOf('timeZone')])];

function TimeZoneForm() {
  const { api, reloadKey } = useViewer();
  const [timeZone, setTimeZone] = useState('');
  const save = useAction(() => api.setSettings({ time_zone: timeZone.trim() }).then(reloadKey));
  const submit = (event: Event): void => {
    event.preventDefault();
    void save.run();
  };
  return (
    <form class="stack" onSubmit={submit}>
      <div class="row">
        <TextField
          {...{ label: 'New time zone', placeholder: 'Europe/Berlin', list: 'time-zones', required: true }}
          {...{ maxLength: 64, autocomplete: 'off', value: timeZone, onChange: setTimeZone }}
        />
        <button type="submit" class="primary" disabled={save.isBusy}>
          Save
        </button>
      </div>
      <datalist id="time-zones">
        {timeZones.map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
      {save.error !== null && <ErrorNote error={save.error} />}
    </form>
  );
}
