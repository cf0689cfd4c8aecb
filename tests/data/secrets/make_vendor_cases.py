"""A second set of made-up secrets: 34 vendors that ``make_cases`` does not know, in 8 contexts, and 20 more notations.

Every value is random; none is a real credential. ``cases(seed)`` gives ``(vendor, context, secret, text)``; a case
passes when no 12-character piece of the secret survives redaction. ``NO_PREFIX`` names the vendors whose tokens
look like any other random text: in prose, with no name before them, nothing can tell them from an identifier.
"""

from __future__ import annotations

import base64
import random
import string
from collections.abc import Iterator

ALNUM = string.ascii_letters + string.digits
URL = ALNUM + "-_"
HEX = "0123456789abcdef"
LOWER = string.ascii_lowercase + string.digits
NO_PREFIX = frozenset({"datadog", "cloudflare", "cohere", "algolia", "vercel", "fastly", "confluent"})
CONTEXTS = {
    "env": "{env}={secret}\nDEBUG=1",
    "json": '{{"name": "x", "{lower}": "{secret}", "retries": 3}}',
    "yaml": "service:\n  {camel}: {secret}\n  retries: 3",
    "prose": "ok so use {secret} for now, I will rotate it later",
    "cli": "deploy --{kebab} {secret} --region eu",
    "header": "curl -H 'Authorization: Bearer {secret}' https://api.example.com/v1",
    "python": 'client = Client(base="eu", {lower}="{secret}")',
    "url": "GET https://api.example.com/v1/items?{lower}={secret}&page=2",
}


def vendors(seed: int) -> dict[str, tuple[str, str]]:
    """Vendor -> (environment variable, token)."""
    rng = random.Random(seed)

    def some(count: int, alphabet: str = ALNUM) -> str:
        return "".join(rng.choice(alphabet) for _ in range(count))

    def uuid() -> str:
        return "-".join(some(n, HEX) for n in (8, 4, 4, 4, 12))

    return {
        "shopify": ("SHOPIFY_ACCESS_TOKEN", "shpat_" + some(32, HEX)),
        "square": ("SQUARE_ACCESS_TOKEN", "sq0atp-" + some(22, URL)),
        "mailgun": ("MAILGUN_API_KEY", "key-" + some(32, HEX)),
        "mailchimp": ("MAILCHIMP_API_KEY", some(32, HEX) + "-us12"),
        "postman": ("POSTMAN_API_KEY", "PMAK-" + some(24, HEX) + "-" + some(34, HEX)),
        "grafana": ("GRAFANA_TOKEN", "glsa_" + some(32) + "_" + some(8, HEX)),
        "newrelic": ("NEW_RELIC_API_KEY", "NRAK-" + some(27, string.ascii_uppercase + string.digits)),
        "sentry": ("SENTRY_AUTH_TOKEN", "sntrys_" + some(64) + "_" + some(43)),
        "datadog": ("DD_API_KEY", some(32, HEX)),
        "doppler": ("DOPPLER_TOKEN", "dp.pt." + some(43)),
        "planetscale": ("PLANETSCALE_TOKEN", "pscale_tkn_" + some(43, URL)),
        "atlassian": ("JIRA_API_TOKEN", "ATATT3xFfGF0" + some(180, URL) + "=" + some(8, HEX.upper())),
        "notion": ("NOTION_TOKEN", "ntn_" + some(46)),
        "figma": ("FIGMA_TOKEN", "figd_" + some(40, URL)),
        "airtable": ("AIRTABLE_TOKEN", "pat" + some(14) + "." + some(64, HEX)),
        "heroku": ("HEROKU_API_KEY", "HRKU-" + uuid()),
        "fly": ("FLY_API_TOKEN", "fo1_" + some(43, URL)),
        "netlify": ("NETLIFY_AUTH_TOKEN", "nfp_" + some(36)),
        "vercel": ("VERCEL_TOKEN", some(24)),
        "cloudflare": ("CLOUDFLARE_API_TOKEN", some(40, URL)),
        "terraform": ("TFE_TOKEN", some(14) + ".atlasv1." + some(67)),
        "pulumi": ("PULUMI_ACCESS_TOKEN", "pul-" + some(40, HEX)),
        "rubygems": ("GEM_HOST_API_KEY", "rubygems_" + some(48, HEX)),
        "docker": ("DOCKER_TOKEN", "dckr_pat_" + some(27, URL)),
        "replicate": ("REPLICATE_API_TOKEN", "r8_" + some(37)),
        "perplexity": ("PPLX_API_KEY", "pplx-" + some(48)),
        "cohere": ("CO_API_KEY", some(40)),
        "langsmith": ("LANGSMITH_API_KEY", "lsv2_pt_" + some(32, HEX) + "_" + some(10, HEX)),
        "supabase": ("SUPABASE_ACCESS_TOKEN", "sbp_" + some(40, HEX)),
        "algolia": ("ALGOLIA_ADMIN_KEY", some(32, HEX)),
        "easypost": ("EASYPOST_API_KEY", "EZAK" + some(54)),
        "bitbucket": ("BITBUCKET_APP_PASSWORD", "ATBB" + some(32)),
        "fastly": ("FASTLY_API_TOKEN", some(32, URL)),
        "confluent": ("CONFLUENT_API_SECRET", some(64, ALNUM + "+/")),
    }


def cases(seed: int) -> Iterator[tuple[str, str, str, str]]:
    for vendor, (env, token) in vendors(seed).items():
        lower = env.lower()
        first, *rest = lower.split("_")
        camel = first + "".join(map(str.title, rest))
        names = {"env": env, "lower": lower, "kebab": lower.replace("_", "-"), "camel": camel}
        for context, template in CONTEXTS.items():
            yield vendor, context, token, template.format(secret=token, **names)
    yield from notations(seed)


def notations(seed: int) -> Iterator[tuple[str, str, str, str]]:
    """Passwords and keys in the other ways they are written down."""
    rng = random.Random(seed + 1)

    def some(count: int, alphabet: str = ALNUM) -> str:
        return "".join(rng.choice(alphabet) for _ in range(count))

    word, plain = "Kv7#" + some(9) + "q2", some(15, string.ascii_letters) + "4"
    armour = "\n".join(some(64, ALNUM + "+/") for _ in range(9))
    mark = "PGP PRIVATE KEY BLOCK-----"
    pgp = f"-----BEGIN {mark}\nVersion: GnuPG v2\n\n{armour}\n=aB3d\n-----END {mark}"
    putty = f"PuTTY-User-Key-File-3: ssh-ed25519\nPrivate-Lines: 9\n{armour}\nPrivate-MAC: {some(64, HEX)}"
    inner = armour.split("\n")[4]
    texts = {
        "pgp": (inner, "$ gpg --export-secret-keys\n" + pgp),
        "putty": (inner, putty),
        "key in yaml": (inner, "tls:\n  key: |\n" + "\n".join("    " + line for line in key_lines(armour))),
        "key in code": (inner, "\n".join(f'    "{line}\\n" +' for line in key_lines(armour))),
        "key tail": (inner, "$ tail -5 id_rsa\n" + "\n".join(key_lines(armour)[3:])),
        "xml": (word, f"<server><username>bob</username><password>{word}</password></server>"),
        "app.config": (word, f'<add key="DbPassword" value="{word}" />'),
        "ado": (word, f"Server=tcp:db.example.com,1433;User ID=sa;Password={word};Encrypt=True"),
        "libpq": (plain, f"psql 'host=db user=app password={plain} dbname=prod'"),
        "sql": (word, f"CREATE USER app WITH PASSWORD '{word}';"),
        "mysql sql": (word, f"ALTER USER 'app'@'%' IDENTIFIED BY '{word}';"),
        "sshpass": (plain, f"sshpass -p '{plain}' ssh root@10.0.0.4"),
        "docker login": (plain, f"docker login -u bob -p {plain} registry.example.com"),
        "k8s env": (word, f"env:\n  - name: DB_PASSWORD\n    value: {word}"),
        "php": (word, f"define('DB_PASSWORD', '{word}');"),
        "javascript": (word, f"const config = {{ user: 'app', password: '{word}' }};"),
        "properties": (word, f"spring.datasource.password={word}"),
        "powershell": (word, f'$env:DB_PASSWORD = "{word}"'),
        "dockerfile": (plain, f"ENV DB_PASSWORD {plain}"),
        "basic": (
            b64 := base64.b64encode(f"svc:{word}".encode()).decode(),
            f'{{"Authorization": "Basic {b64}", "Accept": "*/*"}}',
        ),
    }
    for notation, (secret, text) in texts.items():
        yield notation, "native", secret, text


def key_lines(armour: str) -> list[str]:
    return ["-----BEGIN RSA PRIVATE KEY-----", *armour.split("\n"), "-----END RSA PRIVATE KEY-----"]
