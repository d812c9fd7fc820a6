package headrace;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.attribute.PosixFileAttributes;
import java.nio.file.attribute.PosixFilePermission;
import java.util.Set;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

/**
 * Hadoop's local file system without child processes.
 *
 * Where Hadoop's native library is absent, the stock class runs `chmod` for nearly every file it makes and
 * `ls` for every status that is asked for its owner: about a hundred processes for a small epoch. The Java
 * run-time answers both by itself. Kept to the syntax that Spark's own compiler (Janino) understands.
 */
public class ForklessFileSystem extends LocalFileSystem {
  public ForklessFileSystem() {
    super(new Raw());
  }

  public static class Raw extends RawLocalFileSystem {
    public void setPermission(Path path, FsPermission permission) throws IOException {
      java.util.HashSet granted = new java.util.HashSet();
      PosixFilePermission[] all = PosixFilePermission.values();
      // PosixFilePermission lists owner, group, others; each read, write, execute: the bits from the left.
      for (int i = 0; i < all.length; i++) {
        if ((permission.toShort() & (1 << (all.length - 1 - i))) != 0) {
          granted.add(all[i]);
        }
      }
      Files.setPosixFilePermissions(pathToFile(path).toPath(), granted);
    }

    public FileStatus getFileStatus(Path path) throws IOException {
      java.io.File file = pathToFile(path);
      PosixFileAttributes seen;
      try {
        seen =
            (PosixFileAttributes) Files.readAttributes(file.toPath(), PosixFileAttributes.class, new java.nio.file.LinkOption[0]);
      } catch (IOException failed) {
        // Hadoop knows an absent file by this exception alone. Asked first, it could vanish in between.
        if (failed instanceof NoSuchFileException || !file.exists()) {
          throw new FileNotFoundException("File " + path + " does not exist");
        }
        throw failed;
      }
      return new FileStatus(
          seen.size(),
          seen.isDirectory(),
          1,
          getDefaultBlockSize(path),
          seen.lastModifiedTime().toMillis(),
          seen.lastAccessTime().toMillis(),
          bits(seen.permissions()),
          seen.owner().getName(),
          seen.group().getName(),
          makeQualified(path));
    }

    public FileStatus getFileLinkStatus(Path path) throws IOException {
      return getFileStatus(path);
    }

    public FileStatus[] listStatus(Path path) throws IOException {
      java.io.File file = pathToFile(path);
      if (file.isFile()) {
        return new FileStatus[] {getFileStatus(path)};
      }
      String[] names = file.list();
      if (names == null) {
        throw new FileNotFoundException("File " + path + " does not exist");
      }
      java.util.ArrayList found = new java.util.ArrayList(names.length);
      for (int i = 0; i < names.length; i++) {
        try {
          found.add(getFileStatus(new Path(path, new Path((String) null, (String) null, names[i]))));
        } catch (FileNotFoundException gone) {
          // removed since the directory was listed
        }
      }
      return (FileStatus[]) found.toArray(new FileStatus[found.size()]);
    }

    private FsPermission bits(Set granted) {
      int bits = 0;
      PosixFilePermission[] all = PosixFilePermission.values();
      for (int i = 0; i < all.length; i++) {
        if (granted.contains(all[i])) {
          bits |= 1 << (all.length - 1 - i);
        }
      }
      return new FsPermission((short) bits);
    }
  }
}
