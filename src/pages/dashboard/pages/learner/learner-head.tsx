import { SkilltraceError } from '../../../../client/errors.js';
import type { Profile } from '../../../../client/types.js';
import { useLoad } from '../../base/load.js';
import { buildHref } from '../../base/route.js';
import { useViewer } from '../../base/viewer.js';
import { Button } from '../../parts/button.jsx';
import { ErrorNote } from '../../parts/loaded.jsx';

export const isUnknownLearner = (error: unknown): boolean =>
  error instanceof SkilltraceError && error.code === 'USER_NOT_FOUND';

/** The id replaces a missing name. */
export function LearnerHead({ userId }: { readonly userId: string }) {
  const { api } = useViewer();
  const { data, error, reload } = useLoad((signal) => api.profile(userId, { signal }), [api, userId]);
  return (
    <>
      <div class="row apart learner-head">
        <h1>
          <bdi>{data?.display_name ?? userId}</bdi>
        </h1>
        <Button onClick={() => print()}>Print report</Button>
      </div>
      {data !== null && <ProfileLine profile={data} />}
      {error !== null && !isUnknownLearner(error) && <ErrorNote error={error} retry={reload} />}
    </>
  );
}

function ProfileLine({ profile: { user_id, display_name, groups, attributes } }: { profile: Profile }) {
  const details = Object.entries(attributes).map(([name, value]) => `${name}: ${value}`);
  if (display_name === null && groups.length === 0 && details.length === 0) return null;
  return (
    <p class="soft facts">
      {display_name !== null && (
        <span>
          Id <bdi>{user_id}</bdi>
        </span>
      )}
      {groups.map(({ group_id, name }) => (
        <a key={group_id} href={buildHref('class', [], { group: group_id })}>
          <bdi>{name}</bdi>
        </a>
      ))}
      {details.map((detail) => (
        <bdi key={detail}>{detail}</bdi>
      ))}
    </p>
  );
}
