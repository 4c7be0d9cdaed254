"""peer.py CACHE NAME REVISION PATTERN...: what huggingface_hub makes of a snapshot, and then finds without a network."""
import sys

from huggingface_hub import scan_cache_dir, snapshot_download

cache, name, revision, *patterns = sys.argv[1:]
path = snapshot_download(name, revision=revision, cache_dir=cache, allow_patterns=patterns)
assert path == snapshot_download(name, revision=revision, cache_dir=cache, allow_patterns=patterns, local_files_only=True)
found = scan_cache_dir(cache)
assert not found.warnings, found.warnings
print(path)
for repo in found.repos:
    for snapshot in repo.revisions:
        for file in sorted(snapshot.files, key=lambda f: str(f.file_path)):
            print(repo.repo_id, sorted(snapshot.refs), file.file_path.relative_to(snapshot.snapshot_path), file.size_on_disk)
