"""What vendors' tokens look like: their prefixes, and shapes that need none. Pure tables, as patterns over bytes.

The prefixes are those the vendors document. A token of a vendor that is missing here is still found by the name
before it (``secret_assign``) or, when it has a prefix of its own, by its shape.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from grounded_mcp.ingest.secret_values import PIECE, is_random, longest_stretch

_SPEC = re.compile(r"(\w+):(\d+)(\??)")
_ALPHABETS = {
    "hex": r"[0-9a-fA-F]",
    "base32": r"[A-Z0-9]",
    "lower": r"[a-z0-9]",
    "alnum": r"[A-Za-z0-9]",
    "word": r"[A-Za-z0-9_]",
    "url": r"[A-Za-z0-9_-]",
    "dotted": r"[A-Za-z0-9_.-]",
    "base64": r"[A-Za-z0-9+/=_-]",
    "any": r"[A-Za-z0-9+/=_.~%$:|!*-]",
}

# kind, tail, prefixes. A tail is alphabet:shortest, or a pattern. A "?" asks it to look random too, because words
# begin like that as well.
_VENDORS = r"""
adafruit_key         word:28     aio_
age_key              base32:40   AGE-SECRET-KEY-1 AGE-PLUGIN-
aikido_token         alnum:20    AIK_CI_ AIK_RUNTIME_
airtable_token       [A-Za-z0-9]{14}\.[0-9a-f]{60,}  pat
akamai_token         url:30      akab-
alibaba_key          alnum:12?   LTAI
anthropic_key        url:20      sk-ant-
artifactory_key      alnum:60?   AKCp AKCo
asaas_token          any:20      aact_prod_ aact_hmlg_
asana_token          [0-9]{9,20}(?:/[0-9]{9,20})?:[0-9a-f]{32}  1/1 2/1 0/1
astra_token          dotted:16   AstraCS:
atlassian_token      base64:20   ATATT ATCTT ATSTT ATBB ATOA ATTA ATNA
aws_access_key       base32:16   AKIA ASIA ABIA ACCA A3T
aws_bedrock_key      base64:40   ABSK bedrock-api-key-
bce_key              any:30      bce-v3/
bitbucket_token      base64:24   BBDC-
brave_key            alnum:24?   BSA
buildkite_token      alnum:30    bkua_ bkct_ bkpt_
cartesia_key         word:16     sk_car_
cerebras_key         alnum:30    csk-
checkout_key         [0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}  sk_ sk_sbox_
circleci_token       word:30     CCIPAT_ CCIPRJ_
clickup_token        word:24?    pk_
clojars_token        alnum:40    CLOJARS_
cloudflare_token     url:30      cfut_ cfat_ cfk_ v1.0-
cockroach_key        word:20     CCDB1_
configcat_key        base64:20   configcat-sdk-1/
contentful_token     url:30      CFPAT-
coursier_token       alnum:20?   co_
crates_token         alnum:30?   cio
databricks_token     hex:32      dapi dose dkea
deepgram_key         alnum:30?   dg_
defined_key          url:30      dnkey-
devcycle_key         word:12?    dvc_client_ dvc_mobile_ dvc_server_
devin_key            base64:40   apk_ apk_user_
digitalocean_token   hex:40      dop_v1_ doo_v1_ dor_v1_ dos_v1_ doat_v1_
discord_token        [A-Za-z0-9_-]{18,28}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}  MT MD Mj Mz NT ND Nj Nz OT OD Oj Oz
docker_swarm_key     base64:30   SWMKEY-1- SWMTKN-1-
docker_token         url:20      dckr_pat_ dckr_oat_
doppler_token        dotted:20   dp.pt. dp.st. dp.sa. dp.ct. dp.scim. dp.audit.
dropbox_token        url:40      sl. sl.u.
duffel_token         url:30      duffel_live_ duffel_test_
dynatrace_token      dotted:60   dt0c01. dt0s01. dt0s02. dt0s16.
easypost_key         alnum:30    EZAK EZTK
endorlabs_key        url:12?     endr+
facebook_token       alnum:60?   EAA
fastly_token         url:24?     fst-
figma_token          url:20      figd_ figo_ figu_ figur_
firecrawl_key        hex:32      fc-
fireworks_key        alnum:20?   fw_
flutterwave_key      url:12      FLWSECK- FLWSECK_TEST- FLWPUBK- FLWPUBK_TEST-
fly_token            any:40      FlyV1_ fm1_ fm1r_ fm2_ fo1_
frameio_token        url:40      fio-u-
freshdesk_key        alnum:30?   fd_
gemini_key           dotted:30   AQ.Ab
github_token         word:20     ghp_ gho_ ghu_ ghs_ ghr_ github_pat_
gitlab_token         dotted:16   glpat- gldt- glrt- glrtr- glptt- glft- glsoat- glcbt- glimt- glagent- gloas-
gitlab_token         url:16      glffct- glwt- GR1348941
google_api_key       url:30      AIza
google_oauth         base64:20   GOCSPX- 1//0
google_oauth         dotted:20   ya29.
grafana_token        base64:24   glsa_ glc_ eyJrIjoi
groq_key             alnum:30    gsk_
harness_token        [A-Za-z0-9_-]{22}\.[0-9a-f]{24}\.[A-Za-z0-9]{20,}  pat. sat.
heroku_key           url:30      HRKU-
honeycomb_key        alnum:24    hcaik_ hcxik_ hcmk_ hcalk_ hcalb_ hcamk_
hubspot_token        url:30      pat-na1- pat-na2- pat-eu1- pat-ap1-
huggingface_token    alnum:30    hf_ api_org_
infisical_token      dotted:40   st.
instagram_token      word:60     IGQ
intercom_token       base64:40?  dG9r
intra42_secret       hex:60      s-s4t2ud- s-s4t2af-
jfrog_token          alnum:50    cmVmdGtu
jina_key             url:30      jina_
jwt                  [A-Za-z0-9_-]{8,500}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*){0,3}  eyJ
klaviyo_key          hex:32      pk_
langfuse_key         url:30      sk-lf-
langsmith_key        word:30     lsv2_pt_ lsv2_sk_ ls__
launchdarkly_key     url:36?     sdk- api- rel-
lichess_token        alnum:16?   lip_
linear_key           alnum:30    lin_api_ lin_oauth_ lin_wh_
linkedin_secret      any:12?     WPL_AP1.
lob_key              hex:30      live_ test_
mailersend_token     alnum:24    mlsn.
mailgun_key          hex:32      key- pubkey-
mandrill_key         url:20?     md-
mapbox_token         dotted:40   sk.eyJ tk.eyJ
mem0_key             alnum:30?   m0-
mergify_key          url:40      mergify_application_key_
midtrans_key         url:10?     Mid-server-
miro_token           url:20      eyJtaXJv
modal_token          alnum:20?   ak- as-
mongodb_atlas_key    alnum:30    mdb_sa_sk_ mdb_sa_id_
neon_key             alnum:12?   napi_ npg_
netlify_token        url:30      nfp_ nfc_ nfo_ nfu_ nfb_
newrelic_key         url:19      NRAK- NRJS- NRII- NRSP- NRRA- NRBR- NRIQ-
nostr_key            lower:50    nsec1
notify_key           url:60      gcntfy-
notion_token         alnum:30    ntn_ secret_
npm_token            alnum:30    npm_
nuget_key            lower:40    oy2
nvidia_key           url:30      nvapi-
nylas_key            word:40     nyk_v0_ nyk_
onepassword_key      url:28      A3-
onepassword_token    base64:40   ops_eyJ
onesignal_key        lower:40    os_v2_app_ os_v2_org_
onfido_token         url:16?     api_live. api_live_us. api_live_ca. api_sandbox. api_sandbox_us. api_sandbox_ca.
openai_key           url:20      sk-proj- sk-svcacct- sk-admin- sk-None- sk-or-v1- sk-or-
openai_key           alnum:20?   sk-
openshift_token      url:30      sha256~
ory_token            url:20      ory_at_ ory_ac_ ory_rt_ ory_pat_
paddle_key           word:30     pdl_live_ pdl_sdbx_
paypal_token         any:30      access_token$production$ access_token$sandbox$
perplexity_key       alnum:30    pplx-
persona_key          alnum:20?   persona_production_ persona_sandbox_
pinecone_key         word:30     pcsk_
pinterest_token      word:20?    pina_ pinr_ pinc_
plaid_token          url:30      access-sandbox- access-development- access-production-
planetscale_token    dotted:24   pscale_tkn_ pscale_oauth_ pscale_pw_
polar_token          word:20     polar_at_ polar_oat_ polar_pat_ polar_rt_ polar_cs_
postgres_cloud_key   alnum:12?   AVNS_ p.e
posthog_key          alnum:30    phx_ pha_ phs_
postman_key          url:24      PMAK- PMAT-
prefect_key          alnum:30    pnu_ pnb_
proof_key            word:20?    prf_
pubnub_key           url:30      sec-c-
pulumi_token         hex:36      pul-
pypi_token           url:30      pypi- testpypi-
razorpay_key         alnum:14?   rzp_live_ rzp_test_
readme_key           lower:40    rdme_
render_key           alnum:24?   rnd_
replicate_token      alnum:30    r8_
resend_key           word:24?    re_
rubygems_key         hex:40      rubygems_
runpod_key           alnum:30    rpa_
samsara_token        word:20     samsara_api_
sanity_token         alnum:60?   sk
scalingo_token       url:40      tk-us-
sendgrid_key         dotted:40   SG.
sendinblue_key       url:50      xkeysib- xsmtpsib-
sentry_token         base64:40   sntrys_ sntryu_ sntrya_
settlemint_token     alnum:12    sm_pat_ sm_sat_ sm_aat_
shippo_token         hex:30      shippo_live_ shippo_test_
shopify_token        hex:30      shpat_ shpca_ shppa_ shpss_ shpua_ shpit_ shptka_
slack_token          any:20      xoxb- xoxp- xoxa- xoxo- xoxr- xoxs- xoxc- xoxd- xoxe- xoxe. xapp-
sonar_token          alnum:36    sqp_ squ_ sqa_
sourcegraph_token    word:30     sgp_ sgd_ slk_
square_token         url:20      sq0atp- sq0csp- sq0ids-
square_token         url:22?     EAAA
statsig_key          alnum:30    secret-
stripe_key           alnum:16    sk_live_ sk_test_ rk_live_ rk_test_ sk_org_ whsec_ rk_prod_
stripe_key           base64:24   whsec_
stytch_key           base64:24   secret-live- secret-test-
supabase_key         url:20      sbp_ sb_secret_
tailscale_key        url:20      tskey-auth- tskey-api- tskey-client- tskey-scim- tskey-webhook- tskey-
tavily_key           url:24      tvly-
tencent_key          alnum:30?   AKID IKID
thunderstore_token   word:20?    tss_
together_key         url:30      tgp_v1_
twilio_key           hex:32      SK
twitter_token        any:60?     AAAAAAAAAAAAAAAAAAAA
typeform_token       url:40      tfp_
unkey_key            word:16?    unkey_
upcloud_token        alnum:20    ucat_
valtown_token        word:16?    vtwn_
vault_token          url:20      hvs. hvb. hvr.
vault_token          alnum:24?   s. b. r.
vercel_token         url:24      vercel_blob_rw_ vcp_ vci_ vca_ vcr_ vck_
volcengine_key       alnum:30    AKLT
voyage_key           url:40?     pa-
woocommerce_key      hex:40      ck_ cs_
workato_token        base64:30   wrkaus- wrkeu- wrkus-
workos_key           base64:30   sk_live_a2V5 sk_test_a2V5
xai_key              alnum:40    xai-
yandex_key           base64:30?  AQVN y0_ t1.
zapier_secret        alnum:30?   zpka_
zoho_token           [0-9a-f]{32}\.[0-9a-f]{32}  1000. 1001.
"""


@dataclass(frozen=True, slots=True)
class Vendor:
    """One row of the vendors' table: a token is one of ``prefixes`` and a ``tail``."""

    kind: str
    prefixes: tuple[bytes, ...]
    tail: re.Pattern[bytes]
    random_from: int | None
    """Where words begin like the prefix: the length from which a tail must look random."""
    like_base64: bool
    """Whether prefix and tail could be any piece of base64, and must not follow a "+" or "/"."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A secret without a prefix that is known: ``pattern`` must match a whole run of 20 or more ``[A-Za-z0-9_-]``.

    Group 1 is the part that has to look random.
    """

    kind: str
    pattern: re.Pattern[bytes]

    def fits(self, run: bytes) -> bool:
        match = self.pattern.fullmatch(run)
        return match is not None and is_prefixed_token(run, match[1])


def _vendors() -> tuple[Vendor, ...]:
    rows = []
    for line in _VENDORS.strip().splitlines():
        kind, tail, *prefixes = line.split()
        random_from, like_base64 = None, False
        if spec := _SPEC.fullmatch(tail):
            alphabet, least, doubtful = spec.groups()
            tail = f"{_ALPHABETS[alphabet]}{{{least},}}"
            random_from = min(int(least), 20) if doubtful else None
            like_base64 = all(prefix.isalnum() for prefix in prefixes)
        names = tuple(prefix.encode() for prefix in prefixes)
        rows.append(Vendor(kind, names, re.compile(tail.encode()), random_from, like_base64))
    return tuple(rows)


VENDORS = _vendors()
AHEAD = rb"(?=[A-Za-z0-9+/=_.~%$:|!*-]{15})"
"""Every token of the table is at least this long and of these characters: an engine may look ahead for that first."""

SHAPES = (
    Shape("azure_devops_token", re.compile(rb"([A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4})")),
    Shape("rapidapi_key", re.compile(rb"([a-z0-9]{10}msh[a-z0-9]{15}p1[a-z0-9]{6}jsn[a-z0-9]{12})")),
    Shape("okta_token", re.compile(rb"(00[A-Za-z0-9_-]{40})")),
    Shape("token", re.compile(rb"[A-Za-z][A-Za-z0-9]{0,15}(?:[_-][A-Za-z0-9]{1,12}){0,3}?[_-]([A-Za-z0-9_-]{20,})")),
)

# Words before the random part of a token that say "secret" ...
SECRET_WORDS = frozenset(
    b"""access api apikey app auth bot client cred creds key live oauth pass pat personal priv private prod
    production pw refresh sandbox sec secret service sk staging test tok token user webhook""".split()
)
# ... and words that say "identifier": tools, models and cloud services number their things like this.
ID_WORDS = frozenset(
    b"""acct agent ami arn asst attempt batch blk build cache call card case ch chatcmpl chunk cid cmpl col
    commit container conv cs ctx cus data digest dispute doc env ep eni event evt ext file fp ft gen group hash
    i id ids ii image img in inv item job layer lib link log md5 mem message msg node obj op ord org pack page
    part pi plan pm po pod price proj ref rel release req request res resp rev rs run run sess session ses seti
    sg sha sha1 sha256 sha384 sha512 si sig snap span src srvtoolu step sub subnet svc sys task team thread tool
    toolu trace tx txn u url usr uuid v ver version vol vpc web ws""".split()
)


def is_prefixed_token(run: bytes, secret: bytes) -> bool:
    """Whether ``secret``, the last part of ``run``, reads like a token of a vendor that no table names.

    Its longest piece must be random: 16 characters of any alphabet after a word that says "secret"; of both
    cases with several digits, or 32 of any, without one. A word that says "identifier" rules it out.
    """
    words = _words(run[: len(run) - len(secret)])
    core = longest_stretch(secret)
    if words & ID_WORDS or not is_random(core) or (len(core) == 24 and core.startswith(b"01")):
        return False
    return bool(words & SECRET_WORDS) or _is_mixed(core) or len(core) >= 32


def is_opaque_token(run: bytes) -> bool:
    """Whether a run with nothing to tell what it is reads like a token: 32 to 64 characters of both cases and digits.

    Hex and other text of one case could as well be a hash.
    """
    return 32 <= len(run) <= 64 and not _words(run) & ID_WORDS and _is_mixed(longest_stretch(run))


def _words(run: bytes) -> set[bytes]:
    return set(re.split(rb"[_-]", run.rstrip(b"_-").lower()))


def _is_mixed(core: bytes) -> bool:
    pieces = PIECE.findall(core)
    digits = sum(piece.isdigit() for piece in pieces)
    return len(core) >= 16 and digits > 1 and core.lower() != core != core.upper() and len(core) <= 2.4 * len(pieces)
